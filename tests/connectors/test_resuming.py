"""Runs that go on where another one stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, TransientError
from connectors import tasks
from connectors.base import Checkpoint, Complete, Cursor, Deletion, Event
from connectors.models import Connection, SyncRun
from connectors.services.deletions import approve_deletions
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import ScriptedConnector, text

Connect = Callable[..., Connection]


def _listing(*, fails_at: int | None) -> Callable[[Any, Cursor], Iterator[Event]]:
    """Four pages with a checkpoint each, listed from the cursor on."""

    def script(_self: Any, cursor: Cursor) -> Iterator[Event]:
        for page in range(cursor.get("page", 0), 4):
            if page == fails_at:
                raise CredentialsError("Expired.")
            yield from (text(f"{page}{letter}") for letter in "abc")
            yield Checkpoint({"page": page + 1})
        yield Complete()
        yield Checkpoint({})

    return script


def test_what_a_failed_run_met_is_not_swept_by_the_one_that_goes_on(
    connect: Connect, syncs: Syncs
) -> None:
    connection = connect()
    ScriptedConnector.script = _listing(fails_at=2)
    assert syncs.run(connection).status == "failed"
    ScriptedConnector.script = _listing(fails_at=None)
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.deleted) == ("succeeded", 6, 0)
    assert len(syncs.documents()) == 12


def test_the_next_listing_sweeps_again(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    ScriptedConnector.script = _listing(fails_at=2)
    syncs.run(connection)
    ScriptedConnector.script = _listing(fails_at=None)
    syncs.run(connection)
    run = syncs.play(connection, *(text(f"{page}a") for page in range(4)), Complete())
    assert (run.kept, run.deleted) == (4, 8)


def test_a_run_that_gets_on_may_be_put_back_often(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    def script(_self: Any, cursor: Cursor) -> Iterator[Event]:
        page = cursor.get("page", 0)
        yield text(f"{page}")
        if page < 30:
            yield Checkpoint({"page": page + 1})
            raise TransientError("Busy.")

    run = _until_it_ends(connect, syncs, keeper, script)
    assert (run.status, run.inserted) == ("succeeded", 31)


def test_a_run_that_does_not_get_on_is_given_up(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        yield Checkpoint({"page": 1})
        raise TransientError("Busy.")

    run = _until_it_ends(connect, syncs, keeper, script)
    assert (run.status, run.error_code) == ("failed", "remote_transient")
    assert run.attempts < 10


def test_what_kills_every_worker_is_given_up(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect()
    run = syncs.start(connection)
    with tenant_scope(keeper.tenant_id):
        SyncRun.objects.filter(id=run.id).update(attempts=20)
    ScriptedConnector.script = lambda _self, _cursor: iter([text("a")])
    syncs.work()
    run = syncs.fresh(run)
    assert run.status == "failed"
    assert "20 times at the same place" in run.error


def test_what_is_held_is_counted_once(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect()
    syncs.play(connection, *[text(f"{number}") for number in range(60)])
    gone = [Deletion(f"{number}") for number in range(45)]
    run = syncs.play(connection, *gone, Checkpoint({}), *gone, Checkpoint({}))
    assert run.held_deletions == 45
    with tenant_scope(keeper.tenant_id):
        assert approve_deletions(actor=keeper, connection=connection) == 45


def _until_it_ends(connect: Connect, syncs: Syncs, keeper: Actor, script: Any) -> SyncRun:
    ScriptedConnector.script = script
    run: SyncRun = syncs.start(connect())
    for _ in range(100):
        with tenant_scope(keeper.tenant_id):
            SyncRun.objects.update(not_before=timezone.now())
        syncs.work()
        run = syncs.fresh(run)
        if run.finished_at is not None:
            break
    return run


def test_a_run_waits_for_a_free_slot(
    connect: Connect, syncs: Syncs, keeper: Actor, monkeypatch: Any
) -> None:
    monkeypatch.setattr(tasks, "_slots", threading.BoundedSemaphore(1))
    connection = connect()
    ScriptedConnector.script = lambda _self, _cursor: iter([text("a")])
    run = syncs.start(connection)
    with tasks._slots:
        syncs.work()
    assert syncs.fresh(run).status == "queued"
    with tenant_scope(keeper.tenant_id):
        SyncRun.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    tasks.resume_abandoned_task.run()
    syncs.work()
    assert syncs.fresh(run).status == "succeeded"
