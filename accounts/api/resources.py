"""Routes of keys, members and audit events: parse, call one access function and one service, render."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import (
    Action,
    access_api_key,
    access_membership,
    get_tenant,
    visible_api_keys,
    visible_audit_events,
    visible_memberships,
)
from accounts.api.permissions import ANY_ACTOR
from accounts.api.serializers import (
    ApiKeySerializer,
    AuditEventSerializer,
    AuditFilterSerializer,
    InvitationSerializer,
    IssuedKeySerializer,
    MemberSerializer,
    MeSerializer,
    NewApiKeySerializer,
    NewInvitationSerializer,
    RoleSerializer,
)
from accounts.api.views import TenantAPIView, TenantViewSet
from accounts.services.api_keys import issue_key, revoke_key
from accounts.services.invitations import invite
from accounts.services.tenants import change_role, remove_member


class ApiKeyViewSet(TenantViewSet):
    """The keys of the tenant."""

    required_action = Action.ADMIN
    shows_secret = True
    serializer_class = ApiKeySerializer

    def list(self, request: Request) -> Response:
        """List, newest first, without secrets."""
        return self.paginate(visible_api_keys(self.actor), ApiKeySerializer)

    @extend_schema(request=NewApiKeySerializer, responses={201: IssuedKeySerializer})
    def create(self, request: Request) -> Response:
        """Issue a key. Its text is in this answer and nowhere else."""
        body = NewApiKeySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        key, text = issue_key(
            actor=self.actor,
            name=values["name"],
            scopes=values["scopes"],
            knowledge_base_ids=values.get("knowledge_bases"),
            agent_id=values.get("agent"),
            expires_at=values.get("expires_at"),
        )
        answer = {**ApiKeySerializer(key).data, "key": text}
        return Response(
            answer, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"}
        )

    def destroy(self, request: Request, pk: UUID) -> Response:
        """Revoke at once."""
        revoke_key(actor=self.actor, key=access_api_key(self.actor, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemberViewSet(TenantViewSet):
    """The people of the tenant."""

    required_action = Action.ADMIN
    serializer_class = MemberSerializer

    def list(self, request: Request) -> Response:
        """List, newest first."""
        return self.paginate(visible_memberships(self.actor), MemberSerializer)

    @extend_schema(request=NewInvitationSerializer, responses={201: InvitationSerializer})
    def create(self, request: Request) -> Response:
        """Invite by mail."""
        body = NewInvitationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        tenant = get_tenant(self.actor)
        invitation = invite(actor=self.actor, tenant_name=tenant.name, **body.validated_data)
        return Response(InvitationSerializer(invitation).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=RoleSerializer, responses=MemberSerializer)
    def partial_update(self, request: Request, pk: UUID) -> Response:
        """Give another role."""
        membership = access_membership(self.actor, pk)
        body = RoleSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        change_role(actor=self.actor, membership=membership, role=body.validated_data["role"])
        return Response(MemberSerializer(membership).data)

    def destroy(self, request: Request, pk: UUID) -> Response:
        """End the membership; the person's account remains."""
        remove_member(actor=self.actor, membership=access_membership(self.actor, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditEventViewSet(TenantViewSet):
    """What happened in the tenant and what was refused."""

    required_action = Action.ADMIN
    serializer_class = AuditEventSerializer

    @extend_schema(parameters=[AuditFilterSerializer])
    def list(self, request: Request) -> Response:
        """List, newest first; `denied` narrows it."""
        wanted = AuditFilterSerializer(data=request.query_params)
        wanted.is_valid(raise_exception=True)
        events = visible_audit_events(self.actor)
        if wanted.validated_data["denied"] is not None:
            events = events.filter(denied=wanted.validated_data["denied"])
        return self.paginate(events, AuditEventSerializer)


class MeView(TenantAPIView):
    """The caller."""

    required_action = ANY_ACTOR

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Who calls, in which tenant, with which rights."""
        actor = self.actor
        bound = actor.knowledge_base_ids
        answer = {
            "tenant": get_tenant(actor),
            "label": actor.label,
            "actions": sorted(action.value for action in actor.actions),
            "knowledge_bases": None if bound is None else sorted(bound),
        }
        return Response(MeSerializer(answer).data)
