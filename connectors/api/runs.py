"""Runs and items of connections over HTTP."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from config.errors import FieldError, InvalidInputError, NotFoundError
from connectors.access import access_connection, access_item, access_run
from connectors.api.serializers import SyncItemSerializer, SyncRunSerializer
from connectors.models import SyncItem, SyncRun
from connectors.services.runs import cancel_run, retry_item, start_run
from connectors.standing import items_of

_ITEM_ORDER = ("external_id",)  # unique in a connection, and indexed


class SyncBodySerializer(serializers.Serializer[Any]):
    """Which run is wanted; without any: one for changes."""

    full = serializers.BooleanField(
        required=False, default=False, help_text="Compare everything the source has."
    )
    replay = serializers.BooleanField(
        required=False, default=False, help_text="Take everything from the capture, not the source."
    )

    @property
    def kind(self) -> SyncRun.Kind:
        """The kind of run. Raises `InvalidInputError`."""
        values = self.validated_data
        if values["full"] and values["replay"]:
            fault = FieldError("replay", "Not together with full.")
            raise InvalidInputError("One run does one of both.", [fault])
        if values["replay"]:
            return SyncRun.Kind.REPLAY
        return SyncRun.Kind.FULL if values["full"] else SyncRun.Kind.INCREMENTAL


class ItemFilterSerializer(serializers.Serializer[Any]):
    """Narrows the list."""

    status = serializers.ChoiceField(SyncItem.Status.choices, required=False)


class ConnectionSyncView(TenantAPIView):
    """Starting runs."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=SyncBodySerializer, responses={202: SyncRunSerializer})
    def post(self, request: Request, pk: str) -> Response:
        """Queue a run."""
        connection = access_connection(self.actor, pk)
        body = SyncBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        run = start_run(actor=self.actor, connection=connection, kind=body.kind)
        return Response(SyncRunSerializer(run).data, status=status.HTTP_202_ACCEPTED)


class ConnectionRunsView(TenantAPIView):
    """The runs of a connection."""

    action_for = {"GET": Action.WRITE}

    @extend_schema(responses=SyncRunSerializer(many=True))
    def get(self, request: Request, pk: str) -> Response:
        """List, newest first; the last two hundred are kept."""
        del request
        runs = access_connection(self.actor, pk).runs.all()
        return self.paginate(runs, SyncRunSerializer)


class ConnectionItemsView(TenantAPIView):
    """The things of the source, as the last runs saw them."""

    action_for = {"GET": Action.WRITE}

    @extend_schema(parameters=[ItemFilterSerializer], responses=SyncItemSerializer(many=True))
    def get(self, request: Request, pk: str) -> Response:
        """List, by external id; `status=failed` includes those whose document could not be indexed."""
        connection = access_connection(self.actor, pk)
        wanted = ItemFilterSerializer(data=request.query_params.dict())
        wanted.is_valid(raise_exception=True)
        items = items_of(connection, **wanted.validated_data)
        return self.paginate(items, SyncItemSerializer, ordering=_ITEM_ORDER)


class ItemRetryView(TenantAPIView):
    """Another try of a failed item."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses={202: SyncRunSerializer})
    def post(self, request: Request, pk: str, item_pk: str) -> Response:
        """Queue a run over the failed items, this one included."""
        del request
        connection = access_connection(self.actor, pk)
        item = access_item(self.actor, item_pk)
        if item.connection_id != connection.id:
            raise NotFoundError
        run = retry_item(actor=self.actor, item=item)
        return Response(SyncRunSerializer(run).data, status=status.HTTP_202_ACCEPTED)


class RetryFailedView(TenantAPIView):
    """Another try of all failed items."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses={202: SyncRunSerializer})
    def post(self, request: Request, pk: str) -> Response:
        """Queue a run over them."""
        del request
        connection = access_connection(self.actor, pk)
        run = start_run(actor=self.actor, connection=connection, kind=SyncRun.Kind.RETRY)
        return Response(SyncRunSerializer(run).data, status=status.HTTP_202_ACCEPTED)


class SyncRunView(TenantAPIView):
    """One run."""

    action_for = {"GET": Action.WRITE}
    serializer_class = SyncRunSerializer

    def get(self, request: Request, pk: str) -> Response:
        """Read; the counts grow while it runs."""
        del request
        return Response(SyncRunSerializer(access_run(self.actor, pk)).data)


class SyncRunCancelView(TenantAPIView):
    """Ending a run early."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses=SyncRunSerializer)
    def post(self, request: Request, pk: str) -> Response:
        """Ask it to end; it does within seconds. What it has committed stays."""
        del request
        run = cancel_run(actor=self.actor, run=access_run(self.actor, pk))
        return Response(SyncRunSerializer(run).data)
