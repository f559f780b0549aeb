"""Who is asking and what they may do: decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from accounts.models import (
    ApiKey,
    AuditEvent,
    Membership,
    Role,
    Scope,
    Tenant,
    WebhookDelivery,
    WebhookEndpoint,
)
from config.errors import ForbiddenError, NotFoundError

PUBLIC = "public"

_Row = TypeVar("_Row", bound=Model)


class Action(StrEnum):
    """The verbs of the product; routes declare the one they need."""

    SEARCH = "search"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


ROLE_ACTIONS: dict[str, frozenset[Action]] = {
    Role.VIEWER: frozenset({Action.SEARCH, Action.READ}),
    Role.EDITOR: frozenset({Action.SEARCH, Action.READ, Action.WRITE}),
    Role.ADMIN: frozenset(Action),
    Role.OWNER: frozenset(Action),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """A person in a tenant, or a key. `knowledge_base_ids` None means every base of the tenant;
    `principals` are those the actor reads as."""

    tenant_id: UUID
    label: str
    actions: frozenset[Action]
    principals: frozenset[str] = frozenset({PUBLIC})
    may_assert_principals: bool = False
    knowledge_base_ids: frozenset[UUID] | None = None
    user_id: int | None = None
    api_key_id: UUID | None = None
    is_owner: bool = False

    def may(self, action: Action) -> bool:
        """Whether the action is open to this actor."""
        return action in self.actions

    def require(self, action: Action) -> None:
        """Raise `ForbiddenError` naming what is missing."""
        if not self.may(action):
            what = "scope" if self.api_key_id else "role"
            raise ForbiddenError(
                f"This needs the right “{action}”, which your {what} does not give."
            )

    @property
    def sees_every_document(self) -> bool:
        """Those who keep the documents see them all; readers see what their principals may."""
        return self.may(Action.WRITE) or self.may(Action.ADMIN)


def actor_for_member(membership: Membership) -> Actor:
    """The actor a logged-in member is."""
    email = membership.user.email
    return Actor(
        tenant_id=membership.tenant_id,
        label=email,
        actions=ROLE_ACTIONS[membership.role],
        principals=frozenset({PUBLIC, f"user:{email}"}),
        may_assert_principals=membership.role in {Role.OWNER, Role.ADMIN},
        user_id=membership.user_id,
        is_owner=membership.role == Role.OWNER,
    )


def actor_for_key(key: ApiKey) -> Actor:
    """The actor a key is. The scope `admin` includes the others."""
    scopes = set(Scope) if Scope.ADMIN in key.scopes else set(key.scopes)
    bound = key.knowledge_base_ids
    return Actor(
        tenant_id=key.tenant_id,
        label=f"key {key.name} (gw_{key.prefix})",
        actions=frozenset(action for action in Action if action.value in scopes),
        may_assert_principals=Scope.PRINCIPALS in scopes,
        knowledge_base_ids=None if bound is None else frozenset(bound),
        api_key_id=key.id,
    )


def operator_actor(tenant_id: UUID) -> Actor:
    """The operator at the command line, who owns the machine."""
    return Actor(
        tenant_id=tenant_id,
        label="operator",
        actions=frozenset(Action),
        may_assert_principals=True,
        is_owner=True,
    )


def row_by_id(rows: QuerySet[_Row], reference: object) -> _Row:
    """One of the rows that an actor sees. Raises `NotFoundError` for any other id, and for what is none."""
    identity = as_uuid(reference)
    found = rows.filter(id=identity).first() if identity else None
    if found is None:
        raise NotFoundError
    return found


def as_uuid(reference: object) -> UUID | None:
    """An id as people and programs write it; None for what is no id."""
    if isinstance(reference, UUID):
        return reference
    try:
        return UUID(str(reference))
    except ValueError:
        return None


def visible_api_keys(actor: Actor) -> QuerySet[ApiKey]:
    """The keys of the tenant, revoked ones too."""
    actor.require(Action.ADMIN)
    keys: QuerySet[ApiKey] = ApiKey.objects.all()
    return keys


def visible_memberships(actor: Actor) -> QuerySet[Membership]:
    """The members of the tenant."""
    actor.require(Action.ADMIN)
    memberships: QuerySet[Membership] = Membership.objects.select_related("user")
    return memberships


def visible_audit_events(actor: Actor) -> QuerySet[AuditEvent]:
    """What happened in the tenant."""
    actor.require(Action.ADMIN)
    events: QuerySet[AuditEvent] = AuditEvent.objects.all()
    return events


def visible_webhooks(actor: Actor) -> QuerySet[WebhookEndpoint]:
    """The webhooks of the tenant, disabled ones too."""
    actor.require(Action.ADMIN)
    webhooks: QuerySet[WebhookEndpoint] = WebhookEndpoint.objects.all()
    return webhooks


def access_webhook(actor: Actor, pk: UUID) -> WebhookEndpoint:
    """A webhook by id."""
    return row_by_id(visible_webhooks(actor), pk)


def access_delivery(actor: Actor, pk: UUID) -> WebhookDelivery:
    """A delivery by id."""
    deliveries: QuerySet[WebhookDelivery] = WebhookDelivery.objects.filter(
        endpoint__in=visible_webhooks(actor)
    )
    return row_by_id(deliveries.select_related("endpoint"), pk)


def access_api_key(actor: Actor, pk: UUID) -> ApiKey:
    """A key by id."""
    return row_by_id(visible_api_keys(actor), pk)


def access_membership(actor: Actor, pk: UUID) -> Membership:
    """A membership by id."""
    return row_by_id(visible_memberships(actor), pk)


def get_tenant(actor: Actor) -> Tenant:
    """The tenant the actor belongs to."""
    return Tenant.objects.get(id=actor.tenant_id)
