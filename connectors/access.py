"""The only door from an id to a connection, a run or an item."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from accounts.access import Action, Actor, row_by_id
from connectors.models import Connection, SyncItem, SyncRun


def visible_connections(actor: Actor) -> QuerySet[Connection]:
    """Those of the bases that the actor may write to."""
    actor.require(Action.WRITE)
    connections: QuerySet[Connection] = Connection.objects.select_related("knowledge_base")
    if actor.knowledge_base_ids is not None:
        connections = connections.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    return connections


def access_connection(actor: Actor, pk: UUID | str) -> Connection:
    """A connection by id. Raises `NotFoundError`."""
    return row_by_id(visible_connections(actor), pk)


def find_connection_anywhere(pk: str) -> Connection:
    """A connection of any tenant, for callers who are no actors and prove themselves otherwise. Raises
    `NotFoundError`."""
    return row_by_id(Connection.unscoped.all(), pk)


def access_run(actor: Actor, pk: UUID | str) -> SyncRun:
    """A run by id. Raises `NotFoundError`."""
    runs: QuerySet[SyncRun] = SyncRun.objects.filter(connection__in=visible_connections(actor))
    return row_by_id(runs.select_related("connection__knowledge_base"), pk)


def access_item(actor: Actor, pk: UUID | str) -> SyncItem:
    """An item by id. Raises `NotFoundError`."""
    items: QuerySet[SyncItem] = SyncItem.objects.filter(connection__in=visible_connections(actor))
    return row_by_id(items.select_related("connection"), pk)
