"""Connections over HTTP: parse, call one access function and one service, render. Those that wait for the
source open scopes themselves, so that no database connection is held meanwhile."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from accounts.tenancy import tenant_scope
from config.errors import FieldError, InvalidInputError, NotFoundError
from connectors.access import access_connection, visible_connections
from connectors.api.serializers import (
    ConnectionChangeSerializer,
    ConnectionFilterSerializer,
    ConnectionSerializer,
    NewConnectionSerializer,
    NodeSerializer,
)
from connectors.models import Connection
from connectors.registry import kinds
from connectors.services.connections import (
    browse_connection,
    check_connection,
    create_connection,
    delete_connection,
    pause_connection,
    resume_connection,
    update_connection,
)
from connectors.services.deletions import approve_deletions
from connectors.standing import with_standing
from knowledge.access import access_knowledge_base
from knowledge.models import KnowledgeBase

_CHECK = inline_serializer(
    "ConnectionCheck", {"ok": serializers.BooleanField(), "message": serializers.CharField()}
)
_NODES = inline_serializer("Nodes", {"results": NodeSerializer(many=True)})
_APPROVED = inline_serializer("ApprovedDeletions", {"deleted": serializers.IntegerField()})
_PARENT = OpenApiParameter("parent", str, description="Id of a place; left out: the roots.")


class DeletionParametersSerializer(serializers.Serializer[Any]):
    """How to delete a connection."""

    keep_documents = serializers.BooleanField(
        required=False, default=False, help_text="Leave its documents as if they had been uploaded."
    )


class ConnectionsView(TenantAPIView):
    """The connections of the bases the caller keeps."""

    action_for = {"GET": Action.WRITE, "POST": Action.WRITE}
    serializer_class = ConnectionSerializer

    @extend_schema(
        parameters=[ConnectionFilterSerializer], responses=ConnectionSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        """List, newest first."""
        wanted = ConnectionFilterSerializer(data=request.query_params.dict())
        wanted.is_valid(raise_exception=True)
        values = dict(wanted.validated_data)
        if name := values.get("knowledge_base"):
            values["knowledge_base"] = access_knowledge_base(self.actor, name, Action.WRITE)
        connections = visible_connections(self.actor).filter(**values)
        return self.paginate(with_standing(connections), ConnectionSerializer)

    @extend_schema(request=NewConnectionSerializer, responses={201: ConnectionSerializer})
    def post(self, request: Request) -> Response:
        """Connect a source to a base. It is not asked anything yet; `check` does that."""
        body = NewConnectionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = dict(body.validated_data)
        if values["connector"] not in kinds():
            fault = FieldError("connector", f"Unknown: {values['connector']}.")
            raise InvalidInputError("There is no such connector.", [fault])
        base = self._base(values.pop("knowledge_base"))
        made = create_connection(actor=self.actor, base=base, **values)
        return Response(_shown(self, made), status=status.HTTP_201_CREATED)

    def _base(self, name: str) -> KnowledgeBase:
        try:
            return access_knowledge_base(self.actor, name, Action.WRITE)
        except NotFoundError as error:
            fault = FieldError("knowledge_base", f"Unknown: {name}.")
            raise InvalidInputError("There is no such knowledge base.", [fault]) from error


class ConnectionView(TenantAPIView):
    """One connection."""

    action_for = {"GET": Action.WRITE, "PATCH": Action.WRITE, "DELETE": Action.WRITE}
    serializer_class = ConnectionSerializer

    def get(self, request: Request, pk: str) -> Response:
        """Read."""
        del request
        return Response(_shown(self, access_connection(self.actor, pk)))

    @extend_schema(request=ConnectionChangeSerializer, responses=ConnectionSerializer)
    def patch(self, request: Request, pk: str) -> Response:
        """Change some settings. A changed configuration makes the next run compare everything."""
        connection = access_connection(self.actor, pk)
        body = ConnectionChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        update_connection(actor=self.actor, connection=connection, **body.validated_data)
        return Response(_shown(self, connection))

    @extend_schema(parameters=[DeletionParametersSerializer])
    def delete(self, request: Request, pk: str) -> Response:
        """Remove it with the documents it brought, or without them."""
        connection = access_connection(self.actor, pk)
        wanted = DeletionParametersSerializer(data=request.query_params.dict())
        wanted.is_valid(raise_exception=True)
        delete_connection(actor=self.actor, connection=connection, **wanted.validated_data)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ConnectionCheckView(TenantAPIView):
    """Whether the source can be reached."""

    action_for = {"POST": Action.WRITE}
    scoped = False

    @extend_schema(request=None, responses=_CHECK)
    def post(self, request: Request, pk: str) -> Response:
        """Try it now. What stands in the way is answered as a problem that says what to mend."""
        del request
        message = check_connection(actor=self.actor, connection=_read(self, pk))
        return Response({"ok": True, "message": message})


class ConnectionBrowseView(TenantAPIView):
    """The places of the source."""

    action_for = {"GET": Action.WRITE}
    scoped = False

    @extend_schema(parameters=[_PARENT], responses=_NODES)
    def get(self, request: Request, pk: str) -> Response:
        """What lies in a place."""
        parent = request.query_params.get("parent", "")
        nodes = browse_connection(actor=self.actor, connection=_read(self, pk), parent=parent)
        return Response({"results": NodeSerializer(nodes, many=True).data})


class ConnectionPauseView(TenantAPIView):
    """Stopping for a while."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses=ConnectionSerializer)
    def post(self, request: Request, pk: str) -> Response:
        """No run begins until it is resumed. One that is going on ends as usual."""
        del request
        connection = access_connection(self.actor, pk)
        pause_connection(actor=self.actor, connection=connection)
        return Response(_shown(self, connection))


class ConnectionResumeView(TenantAPIView):
    """Going on."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses=ConnectionSerializer)
    def post(self, request: Request, pk: str) -> Response:
        """Let runs begin again."""
        del request
        connection = access_connection(self.actor, pk)
        resume_connection(actor=self.actor, connection=connection)
        return Response(_shown(self, connection))


class DeletionsApprovalView(TenantAPIView):
    """A person's word on deletions that the guard has held."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses=_APPROVED)
    def post(self, request: Request, pk: str) -> Response:
        """Delete what waits."""
        del request
        connection = access_connection(self.actor, pk)
        deleted = approve_deletions(actor=self.actor, connection=connection)
        return Response({"deleted": deleted})


def _read(view: TenantAPIView, pk: str) -> Connection:
    """A connection for work outside of the scope."""
    with tenant_scope(view.actor.tenant_id):
        return access_connection(view.actor, pk)


def _shown(view: TenantAPIView, connection: Connection) -> Any:
    row = with_standing(visible_connections(view.actor)).get(id=connection.id)
    return ConnectionSerializer(row).data
