"""Pushes, calls of the source and ends of runs that meet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from connectors import tasks
from connectors.base import Record
from connectors.models import Connection, SyncRun
from connectors.services.lease import Lease
from connectors.services.outcomes import finish_run
from connectors.services.push import push_records
from connectors.services.runs import follow_change, start_run
from knowledge import tasks as knowledge_tasks
from tests.connectors.scripted import text

Connect = Callable[..., Connection]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _nothing_is_queued(monkeypatch: Any) -> None:
    monkeypatch.setattr(tasks.sync_task, "delay", lambda *_: None)
    monkeypatch.setattr(knowledge_tasks.process_document_task, "delay", lambda *_: None)


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Their results; they begin at the same moment."""
    barrier = Barrier(len(calls))

    def one(call: Callable[[], Any]) -> Any:
        try:
            barrier.wait(10)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(30) for future in [pool.submit(one, call) for call in calls]]


def test_pushes_wait_for_one_another(connect: Connect, keeper: Actor) -> None:
    connection = connect("push")

    def push(records: list[Record]) -> list[str]:
        with tenant_scope(keeper.tenant_id):
            row = Connection.objects.select_related("knowledge_base").get(id=connection.id)
            done = push_records(actor=keeper, connection=row, records=records)
        return [one.outcome for one in done.values()]

    batches = [[text(f"{number}-{n}") for n in range(10)] + [text("shared")] for number in range(4)]
    results = together(*[lambda records=records: push(records) for records in batches])
    outcomes = sorted(one for result in results for one in result)
    assert outcomes == ["created"] * 41 + ["unchanged"] * 3
    with tenant_scope(keeper.tenant_id):
        assert connection.items.count() == 41
        assert sorted(connection.runs.values_list("inserted", flat=True)) == [10, 10, 10, 11]


@pytest.mark.parametrize("attempt", range(5))
def test_no_call_is_lost_when_a_run_ends(connect: Connect, keeper: Actor, attempt: int) -> None:
    connection = connect()
    with tenant_scope(keeper.tenant_id):
        run = start_run(actor=keeper, connection=connection)
    lease = Lease.claim(keeper.tenant_id, run.id)
    assert lease is not None
    told = [lambda: follow_change(keeper.tenant_id, connection.id) for _ in range(3)]
    together(lambda: finish_run(lease, SyncRun.Status.SUCCEEDED), *told)
    with tenant_scope(keeper.tenant_id):
        runs = list(connection.runs.order_by("created_at").values_list("trigger", "status"))
    assert runs == [("operator", "succeeded"), ("webhook", "queued")], attempt
