"""What a run does with the events of a connector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import (
    CredentialsError,
    InvalidInputError,
    RateLimitedError,
    RejectedError,
    TransientError,
)
from connectors import tasks
from connectors.base import (
    Checkpoint,
    Complete,
    Cursor,
    Deletion,
    Event,
    Failure,
    Membership,
    Notice,
)
from connectors.models import Connection, SyncRun
from connectors.services import capture
from connectors.services.connections import delete_connection, update_connection
from connectors.services.deletions import approve_deletions
from connectors.services.lease import Lease
from connectors.services.opening import cache_folder
from connectors.services.principals import with_groups
from connectors.services.runs import abandoned_runs, cancel_run
from knowledge.models import Chunk, Document
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import RefetchingConnector, ScriptedConnector, file, text
from tests.workers import Workers

Connect = Callable[..., Connection]
FULL, RETRY, REPLAY = SyncRun.Kind.FULL, SyncRun.Kind.RETRY, SyncRun.Kind.REPLAY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


def test_records_become_documents_with_their_facts(connect: Connect, syncs: Syncs) -> None:
    moment = datetime(2025, 3, 1, tzinfo=UTC)
    record = text(
        "a", "Herons wade. 苍鹭涉水。", title="Herons", url="https://wiki.example/a", author="Ana",
        breadcrumbs=("Birds", "鸟"), updated_at=moment, metadata={"space": "B"},
    )  # fmt: skip
    connection = connect()
    run = syncs.play(connection, record, Checkpoint({"at": 1}))
    document = syncs.documents()["a"]
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 0, 0, 0))
    assert (document.status, document.title, document.author) == ("ready", "Herons", "Ana")
    assert (document.source, document.source_id) == ("scripted", connection.id)
    assert document.source_uri == "https://wiki.example/a"
    assert document.breadcrumbs == ["Birds", "鸟"]
    assert document.source_updated_at == moment
    assert document.metadata["space"] == "B"
    assert document.principals == ["public"]
    assert document.seen_at is not None


def test_the_next_run_begins_at_the_last_checkpoint(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a"), Checkpoint({"at": 1}), text("b"), Checkpoint({"at": 2}))
    syncs.play(connection)
    syncs.play(connection, kind=FULL)
    assert ScriptedConnector.cursors == [{}, {"at": 2}, {}]


def test_what_is_unchanged_does_no_work(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a"), file("b", version="7"))
    before = syncs.documents()
    run = syncs.play(connection, text("a"), file("b", version="7"))
    assert counts(run) == (0, 0, 2, 0, 0)
    assert ScriptedConnector.fetched == ["b"], "fetched once"
    after = syncs.documents()
    assert after["a"].indexed_at == before["a"].indexed_at
    then, now = before["a"].seen_at, after["a"].seen_at
    assert then is not None
    assert now is not None
    assert now > then


def test_new_content_replaces_the_old_under_the_same_id(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect()
    syncs.play(connection, text("a", "Herons wade."), file("b", b"Old.", version="1"))
    before = syncs.documents()
    run = syncs.play(connection, text("a", "Storks stand."), file("b", b"New.", version="2"))
    assert counts(run) == (0, 2, 0, 0, 0)
    after = syncs.documents()
    assert {name: one.id for name, one in after.items()} == {
        name: one.id for name, one in before.items()
    }
    with tenant_scope(keeper.tenant_id):
        contents = sorted(Chunk.objects.filter(live=True).values_list("content", flat=True))
    assert contents == ["New.", "Storks stand."]


def test_changed_facts_embed_nothing(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect(access="fixed")
    syncs.play(connection, file("a"))
    with tenant_scope(keeper.tenant_id):
        chunks = set(Chunk.objects.values_list("id", flat=True))
    run = syncs.play(connection, file("a", breadcrumbs=("Moved",), metadata={"label": "new"}))
    assert counts(run) == (0, 1, 0, 0, 0)
    assert ScriptedConnector.fetched == ["a"]
    document = syncs.documents()["a"]
    assert (document.breadcrumbs, document.metadata["label"]) == (["Moved"], "new")
    with tenant_scope(keeper.tenant_id):
        assert set(Chunk.objects.values_list("id", flat=True)) == chunks


def test_a_deletion_removes_the_document(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a"), text("b"))
    run = syncs.play(connection, Deletion("a"), Deletion("never seen"))
    assert counts(run) == (0, 0, 0, 1, 0)
    assert set(syncs.documents()) == {"b"}
    assert set(syncs.items()) == {"b"}


def test_a_complete_scope_is_swept_and_no_other(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a", scope="x"), text("b", scope="x"), text("c", scope="y"))
    run = syncs.play(connection, text("a", scope="x"), Complete("x"))
    assert counts(run) == (0, 0, 1, 1, 0)
    assert set(syncs.documents()) == {"a", "c"}


def test_what_failed_is_not_taken_for_deleted(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a"), file("b", version="1"))
    run = syncs.play(
        connection,
        Failure("a", "Cannot be read."),
        file("b", RejectedError("Too large."), version="2"),
        Complete(),
    )
    assert run.status == "partial"
    assert counts(run) == (0, 0, 0, 0, 2)
    assert set(syncs.documents()) == {"a", "b"}
    items = syncs.items()
    assert (items["a"].status, items["a"].stage, items["a"].error) == (
        "failed",
        "list",
        "Cannot be read.",
    )
    assert (items["b"].stage, items["b"].error) == ("fetch", "Too large.")
    assert items["b"].next_retry_at is not None


def test_a_retry_reads_the_failed_items_only(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, file("a"), file("b", RejectedError("Busy.")))
    ScriptedConnector.fetched.clear()
    run = syncs.play(connection, file("a", version="2"), file("b"), Complete(), kind=RETRY)
    assert ScriptedConnector.fetched == ["b"]
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 0, 0, 0))
    assert syncs.items()["b"].status == "stored"


def test_failed_items_that_are_due_are_read_again(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect("refetching")
    RefetchingConnector.again = lambda ids: iter([file(name) for name in ids])
    syncs.play(connection, file("a", RejectedError("Busy.")))
    assert syncs.items()["a"].status == "failed"
    syncs.play(connection)
    assert syncs.items()["a"].status == "failed", "not due yet"
    with tenant_scope(keeper.tenant_id):
        connection.items.update(next_retry_at=timezone.now() - timedelta(minutes=1))
    syncs.play(connection)
    assert syncs.items()["a"].status == "stored"


def test_a_run_that_would_delete_much_asks(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect()
    many = [text(f"{number}") for number in range(100)]
    syncs.play(connection, *many, Complete())
    run = syncs.play(connection, *many[:60], Complete())
    assert (run.status, run.deleted, run.held_deletions) == ("partial", 0, 40)
    assert len(syncs.documents()) == 100
    with tenant_scope(keeper.tenant_id):
        assert approve_deletions(actor=keeper, connection=connection) == 40
    assert len(syncs.documents()) == 60
    assert len(syncs.items()) == 60


def test_held_items_that_come_back_stay(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect()
    many = [text(f"{number}") for number in range(60)]
    syncs.play(connection, *many, Complete())
    syncs.play(connection, *many[:10], Complete())
    run = syncs.play(connection, *many[:55], Complete())
    assert (run.held_deletions, run.deleted) == (0, 0), "the five held ones are still held"
    with tenant_scope(keeper.tenant_id):
        assert approve_deletions(actor=keeper, connection=connection) == 5
    assert len(syncs.documents()) == 55


def test_tombstones_are_guarded_too(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, *[text(f"{number}") for number in range(100)])
    run = syncs.play(connection, *[Deletion(f"{number}") for number in range(90)])
    assert run.status == "partial"
    assert len(syncs.documents()) >= 70
    assert run.deleted + run.held_deletions == 90


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CredentialsError("No longer accepted."), "failed", "remote_credentials"),
        (RejectedError("No such space."), "failed", "remote_rejected"),
    ],
)
def test_what_was_committed_before_an_error_stays(
    connect: Connect, syncs: Syncs, error: Exception, status: str, code: str
) -> None:
    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        yield Checkpoint({"at": 1})
        raise error

    connection = connect()
    ScriptedConnector.script = script
    run = syncs.run(connection)
    assert (run.status, run.error_code, run.inserted) == (status, code, 1)
    assert set(syncs.documents()) == {"a"}
    assert syncs.fresh(connection).cursor == {"at": 1}


@pytest.mark.parametrize("error", [RateLimitedError("Slow down.", 90), TransientError("Down.")])
def test_a_busy_source_is_asked_again_later(
    connect: Connect, syncs: Syncs, error: Exception, keeper: Actor
) -> None:
    calls: list[Cursor] = []

    def script(_self: Any, cursor: Cursor) -> Iterator[Event]:
        calls.append(cursor)
        yield text(f"a{len(calls)}")
        yield Checkpoint({"at": len(calls)})
        if len(calls) == 1:
            raise error

    connection = connect()
    ScriptedConnector.script = script
    run = syncs.run(connection)
    assert run.status == "queued"
    assert run.not_before is not None
    assert syncs.delayed == [(str(keeper.tenant_id), str(run.id))]
    with tenant_scope(keeper.tenant_id):
        SyncRun.objects.update(not_before=timezone.now())
    syncs.work()
    run = syncs.fresh(run)
    assert (run.status, run.inserted, run.error) == ("succeeded", 2, "")
    assert calls == [{}, {"at": 1}]


def test_credentials_refused_again_and_again_pause_the_connection(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield from ()
        raise CredentialsError("Revoked.")

    connection = connect(auth_method="token", credentials={"token": "old"})
    ScriptedConnector.script = script
    for _ in range(3):
        syncs.run(connection)
    connection = syncs.fresh(connection)
    assert connection.status == "needs_authorisation"
    assert "Revoked." in connection.status_reason
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=connection, credentials={"token": "new"})
    assert syncs.fresh(connection).status == "active"


def test_a_run_that_lacks_credentials_is_skipped_and_says_why(
    connect: Connect, syncs: Syncs
) -> None:
    run = syncs.play(connect(auth_method="token"), text("a"))
    assert run.status == "skipped"
    assert "credentials.token" in run.error
    assert syncs.documents() == {}


def test_warnings_make_a_run_partial(connect: Connect, syncs: Syncs) -> None:
    run = syncs.play(connect(), Notice("One channel is archived."), text("a"))
    assert (run.status, run.warnings) == ("partial", ["One channel is archived."])


def test_a_cancelled_run_ends_and_keeps_what_it_has(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect()

    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        yield Checkpoint({"at": 1})
        with tenant_scope(keeper.tenant_id):
            run = SyncRun.objects.get(connection=connection)
            cancel_run(actor=keeper, run=run)
        yield text("b")
        yield Checkpoint({"at": 2})
        yield text("c")
        yield Checkpoint({"at": 3})

    ScriptedConnector.script = script
    run = syncs.run(connection)
    assert run.status == "cancelled"
    assert set(syncs.documents()) < {"a", "b", "c"}
    assert "a" in syncs.documents()


def test_one_run_at_a_time(connect: Connect, syncs: Syncs) -> None:
    from config.errors import ConflictError

    connection = connect()
    syncs.start(connection)
    with pytest.raises(ConflictError, match="going on"):
        syncs.start(connection)


def test_who_has_lost_the_lease_commits_nothing(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect()

    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        with tenant_scope(keeper.tenant_id):
            SyncRun.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))
            run = SyncRun.objects.get(connection=connection)
        assert abandoned_runs() == [(keeper.tenant_id, run.id)]
        assert Lease.claim(keeper.tenant_id, run.id) is not None
        yield text("b")

    ScriptedConnector.script = script
    run = syncs.run(connection)
    assert run.status == "running", "it is the other worker's"
    assert syncs.documents() == {}


def test_permissions_of_the_source_become_principals(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect("restricted")
    ScriptedConnector.groups = [
        Membership("group:eng", "user:Ana@Example.com"), Membership("group:all", "group:eng"),
    ]  # fmt: skip
    syncs.play(
        connection,
        text("a", principals=frozenset({"user:Bo@example.com"})),
        text("b", principals=frozenset({"group:all"})),
        text("c", principals=frozenset({"public"})),
        text("d"),
    )
    space = f"group:restricted:{connection.id.hex[:12]}"
    found = {name: one.principals for name, one in syncs.documents().items()}
    assert found == {"a": ["user:bo@example.com"], "b": [f"{space}:all"], "c": ["public"], "d": []}
    with tenant_scope(keeper.tenant_id):
        ana = with_groups(["public", "user:ana@example.com"])
        assert ana == {"public", "user:ana@example.com", f"{space}:eng", f"{space}:all"}
    ScriptedConnector.groups = []
    syncs.play(connection)
    with tenant_scope(keeper.tenant_id):
        assert with_groups(["user:ana@example.com"]) == {"user:ana@example.com"}


def test_changed_permissions_hold_at_once(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect("restricted")
    syncs.play(connection, text("a", principals=frozenset({"public"})))
    syncs.play(connection, text("a", principals=frozenset({"user:bo@example.com"})))
    with tenant_scope(keeper.tenant_id):
        assert list(Chunk.objects.values_list("principals", flat=True)) == [["user:bo@example.com"]]


def test_files_without_text_are_not_fetched(connect: Connect, syncs: Syncs) -> None:
    run = syncs.play(connect(), file("a", filename="photo.jpg"), text("b"))
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 1, 0, 0))
    assert ScriptedConnector.fetched == []
    assert syncs.items()["a"].status == "skipped"


def test_impossible_characters_and_lengths_break_nothing(connect: Connect, syncs: Syncs) -> None:
    long = "x" * 900
    run = syncs.play(
        connect(),
        text("a\x00b", "Null \x00 in \ud800 text", title="T\x00" + long, author=long, url="http://" + long * 3,
             metadata={"a\x00": "b\x00", "path": "C:\\u0000\\x", "half": ["\ud800"]}),
        text(long + "1"), text(long + "2"),
    )  # fmt: skip
    assert (run.status, run.inserted) == ("succeeded", 3)
    assert {document.status for document in syncs.documents().values()} == {"ready"}


def test_a_capture_is_replayed_without_the_source(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect(keeps_capture=True)
    syncs.play(
        connection, text("a", "Herons wade.", author="Ana"), file("b", b"Storks."), text("c")
    )
    syncs.play(connection, Deletion("c"))
    with tenant_scope(keeper.tenant_id):
        from knowledge.services.documents import remove_documents

        remove_documents([one.id for one in syncs.documents().values()])

    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield from ()
        raise AssertionError("the source was asked")

    ScriptedConnector.script = script
    run = syncs.run(connection, kind=REPLAY)
    assert (run.status, run.inserted) == ("succeeded", 2)
    assert syncs.documents()["a"].author == "Ana"
    assert set(syncs.documents()) == {"a", "b"}


def test_content_whose_version_is_being_indexed_is_not_stored_again(
    connect: Connect, syncs: Syncs, workers: Workers, keeper: Actor
) -> None:
    connection = connect()
    syncs.play(connection, text("a", "Herons wade."))
    ScriptedConnector.script = lambda _self, _cursor: iter([text("a", "Storks stand.")])
    for _ in range(2):
        syncs.start(connection)
        waiting, syncs.delayed = syncs.delayed, []
        for ids in waiting:
            with workers.commits():
                tasks.sync_task.run(*ids)
    assert len(workers) == 1, "one version waits to be indexed"
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        assert list(Chunk.objects.values_list("content", flat=True)) == ["Storks stand."]


def test_documents_may_outlive_their_connections(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    for name in ("one", "two"):
        connection = connect(name=name)
        syncs.play(connection, text("a", "The same words."))
        with tenant_scope(keeper.tenant_id):
            delete_connection(actor=keeper, connection=connection, keep_documents=True)
    with tenant_scope(keeper.tenant_id):
        kept = Document.objects.all()
        assert [one.source_id for one in kept] == [None, None]
        assert len({one.external_id for one in kept}) == 2


def test_a_deleted_connection_takes_everything_along(
    connect: Connect, syncs: Syncs, keeper: Actor, workers: Workers
) -> None:
    connection = connect(keeps_capture=True)
    syncs.play(connection, text("a"))
    cache = cache_folder(connection)
    cache.mkdir(parents=True)
    workers.commit(keeper, lambda: delete_connection(actor=keeper, connection=connection))
    assert syncs.documents() == {}
    assert not cache.exists()
    assert list(capture.replay(connection)) == []
    assert not PeriodicTask.objects.filter(name__contains=str(connection.id)).exists()


def test_another_way_to_authenticate_asks_for_new_credentials(
    connect: Connect, keeper: Actor
) -> None:
    connection = connect(auth_method="token", credentials={"token": "old"})
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=connection, auth_method="none")
    assert connection.credentials == {}


def test_principals_of_a_connection_are_checked(connect: Connect) -> None:
    with pytest.raises(InvalidInputError, match="is not a principal"):
        connect(principals=["everybody"])


def test_what_the_database_cannot_hold_is_named(connect: Connect) -> None:
    with pytest.raises(InvalidInputError) as error:
        connect(config={"word": "a\x00b"})
    assert [fault.field for fault in error.value.errors] == ["config.word"]


def test_places_that_are_no_longer_chosen_are_removed(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = connect(config={"word": "both"})
    everything: list[Event] = [
        text("a", scope="x"),
        text("b", scope="y"),
        Complete("x"),
        Complete("y"),
    ]
    syncs.play(connection, *everything, Checkpoint({"at": 1}))
    syncs.play(connection, Checkpoint({"at": 2}))
    assert set(syncs.documents()) == {"a", "b"}, "no changes mean nothing"
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=syncs.fresh(connection), config={"word": "one"})
    syncs.play(connection, text("a", scope="x"), Complete("x"), Notice("y was not reached."))
    assert set(syncs.documents()) == {"a", "b"}, "a warning may be why"
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=syncs.fresh(connection), config={"word": "two"})
    run = syncs.play(connection, text("a", scope="x"), Complete("x"))
    assert (run.status, run.deleted) == ("succeeded", 1)
    assert set(syncs.documents()) == {"a"}


def test_a_source_that_is_a_window_keeps_what_has_left_it(connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, text("a", scope="feed"), text("b", scope="all"), Complete("all"))
    syncs.play(connection, text("b", scope="all"), Complete("all"), kind=FULL)
    assert set(syncs.documents()) == {"a", "b"}, "the feed has never promised to be complete"


def test_content_is_not_lost_when_a_part_of_it_fails(connect: Connect, syncs: Syncs) -> None:
    run = syncs.play(connect(), text("a"), Failure("a", "Its comments cannot be read."))
    assert (run.inserted, run.failed) == (1, 1)
    assert syncs.documents()["a"].status == "ready"
    assert syncs.items()["a"].status == "failed", "and will be tried again"


def test_without_promises_the_connection_says_who_reads(connect: Connect, syncs: Syncs) -> None:
    connection = connect(principals=["group:staff"])
    syncs.play(connection, text("a"), text("b", principals=frozenset({"user:bo@example.com"})))
    found = {name: one.principals for name, one in syncs.documents().items()}
    assert found == {"a": ["group:staff"], "b": ["user:bo@example.com"]}
