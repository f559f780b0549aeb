"""Connections of a tenant with an empty base, and runs in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from connectors import registry, tasks
from connectors.base import Event
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services import lease
from connectors.services.connections import create_connection
from connectors.services.runs import start_run
from knowledge.models import Document, KnowledgeBase
from tests.connectors.scripted import (
    RefetchingConnector,
    RestrictedConnector,
    ScriptedConnector,
    SearchableConnector,
)
from tests.knowledge.conftest import base, keeper, workers  # noqa: F401
from tests.workers import Workers

_SCRIPTED = {
    "scripted": ScriptedConnector,
    "restricted": RestrictedConnector,
    "refetching": RefetchingConnector,
    "searchable": SearchableConnector,
}


@pytest.fixture(autouse=True)
def scripted(monkeypatch: Any) -> Iterator[type[ScriptedConnector]]:
    """The scripted connectors, known to the registry for the time of a test."""
    for kind, connector in _SCRIPTED.items():
        monkeypatch.setitem(
            registry.NATIVE, kind, f"tests.connectors.scripted.{connector.__name__}"
        )
    registry.connector_class.cache_clear()
    ScriptedConnector.groups, ScriptedConnector.cursors, ScriptedConnector.fetched = [], [], []
    yield ScriptedConnector
    registry.connector_class.cache_clear()


@pytest.fixture
def connect(keeper: Actor, base: KnowledgeBase) -> Callable[..., Connection]:  # noqa: F811
    """`connect("folder", config={…})`: a connection of the base."""

    def make(connector: str = "scripted", **values: Any) -> Connection:
        with tenant_scope(keeper.tenant_id):
            return create_connection(actor=keeper, base=base, connector=connector, **values)

    return make


class Syncs:
    """Runs of connections, worked off in this process."""

    def __init__(self, actor: Actor, workers: Workers, monkeypatch: Any) -> None:  # noqa: F811
        self._actor, self._workers = actor, workers
        # The heartbeat has a database connection of its own, which sees nothing of a test's transaction.
        monkeypatch.setattr(lease, "_BEAT_EVERY_S", 3600.0)
        self.delayed: list[tuple[str, str]] = []
        monkeypatch.setattr(tasks.sync_task, "delay", lambda *ids: self.delayed.append(ids))
        monkeypatch.setattr(
            tasks.sync_task, "apply_async", lambda ids, **_: self.delayed.append(ids)
        )

    def start(
        self, connection: Connection, kind: SyncRun.Kind = SyncRun.Kind.INCREMENTAL
    ) -> SyncRun:
        """Queue a run."""
        run: SyncRun = self._workers.commit(
            self._actor,
            lambda: start_run(actor=self._actor, connection=self.fresh(connection), kind=kind),
        )
        return run

    def work(self) -> None:
        """Work off what is queued, indexing included."""
        waiting, self.delayed = self.delayed, []
        for ids in waiting:
            with self._workers.commits():
                tasks.sync_task.run(*ids)
        self._workers.drain()

    def run(self, connection: Connection, kind: SyncRun.Kind = SyncRun.Kind.INCREMENTAL) -> SyncRun:
        """A run from its start to its end."""
        run = self.start(connection, kind)
        self.work()
        ended: SyncRun = self.fresh(run)
        return ended

    def play(self, connection: Connection, *events: Event, **options: Any) -> SyncRun:
        """A run in which the scripted connector yields these."""
        ScriptedConnector.script = lambda _self, _cursor: iter(events)
        return self.run(connection, **options)

    def fresh(self, row: Any) -> Any:
        """A row as it is now."""
        with tenant_scope(self._actor.tenant_id):
            return type(row).objects.get(id=row.id)

    def documents(self) -> dict[str, Document]:
        """The documents of the tenant by external id."""
        with tenant_scope(self._actor.tenant_id):
            return {one.external_id: one for one in Document.objects.filter(replaces=None)}

    def items(self) -> dict[str, SyncItem]:
        """The ledger by external id."""
        with tenant_scope(self._actor.tenant_id):
            return {one.external_id: one for one in SyncItem.objects.all()}


@pytest.fixture
def syncs(keeper: Actor, workers: Workers, monkeypatch: Any) -> Syncs:  # noqa: F811
    """Runs in this process."""
    return Syncs(keeper, workers, monkeypatch)
