"""The only door from an id to a connection, a run or an item."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from accounts.access import Action, Actor
from config.errors import NotFoundError
from connectors.models import Connection, SyncItem, SyncRun

_Row = TypeVar("_Row", bound=Model)


def visible_connections(actor: Actor) -> QuerySet[Connection]:
    """Those of the bases that the actor may write to."""
    actor.require(Action.WRITE)
    connections: QuerySet[Connection] = Connection.objects.select_related("knowledge_base")
    if actor.knowledge_base_ids is not None:
        connections = connections.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    return connections


def access_connection(actor: Actor, pk: UUID | str) -> Connection:
    """A connection by id. Raises `NotFoundError`."""
    return _one(visible_connections(actor), pk)


def find_connection_anywhere(pk: str) -> Connection:
    """A connection of any tenant, for callers who are no actors and prove themselves otherwise. Raises
    `NotFoundError`."""
    return _one(Connection.unscoped.all(), pk)


def access_run(actor: Actor, pk: UUID | str) -> SyncRun:
    """A run by id. Raises `NotFoundError`."""
    runs: QuerySet[SyncRun] = SyncRun.objects.filter(connection__in=visible_connections(actor))
    return _one(runs.select_related("connection__knowledge_base"), pk)


def access_item(actor: Actor, pk: UUID | str) -> SyncItem:
    """An item by id. Raises `NotFoundError`."""
    items: QuerySet[SyncItem] = SyncItem.objects.filter(connection__in=visible_connections(actor))
    return _one(items.select_related("connection"), pk)


def _one(rows: QuerySet[_Row], pk: UUID | str) -> _Row:
    try:
        found = rows.filter(id=UUID(str(pk))).first()
    except ValueError:
        found = None
    if found is None:
        raise NotFoundError
    return found
