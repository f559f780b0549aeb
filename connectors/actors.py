"""Who acts when a sync does."""

from __future__ import annotations

from accounts.access import Action, Actor
from connectors.models import Connection


def sync_actor(connection: Connection) -> Actor:
    """The connection itself, in the audit."""
    return Actor(
        tenant_id=connection.tenant_id,
        label=f"connection {connection.name}"[:300],
        actions=frozenset({Action.READ, Action.WRITE}),
    )
