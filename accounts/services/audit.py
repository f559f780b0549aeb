"""Recording what happened."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.access import Actor
from accounts.models import AuditEvent
from accounts.tenancy import tenant_scope


def record_event(
    actor: Actor,
    action: str,
    *,
    target: str = "",
    target_id: UUID | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Write down a change; part of the caller's transaction, so both happen or neither."""
    AuditEvent.objects.create(
        actor=actor.label[:300],
        action=action,
        target=target[:300],
        target_id=target_id,
        detail=detail or {},
    )


def record_denial(actor: Actor, action: str, *, target: str) -> None:
    """Write down a refused access, in a transaction of its own."""
    with tenant_scope(actor.tenant_id):
        AuditEvent.objects.create(
            actor=actor.label[:300], action=action, target=target[:300], denied=True
        )
