"""Pushing records: what becomes of them, and who may read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.access import Actor
from accounts.models import AuditEvent, Tenant
from accounts.tenancy import tenant_scope
from connectors.models import Connection, SyncRun
from connectors.services.push import Outcome, push_records
from knowledge.models import Chunk
from tests.conftest import ApiFactory
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import text
from tests.workers import Workers

Connect = Callable[..., Connection]
Push = Callable[..., Any]


@pytest.fixture
def connection(connect: Connect) -> Connection:
    """One that is pushed to."""
    return connect("push")


@pytest.fixture
def client(api: ApiFactory, keeper: Actor) -> APIClient:
    """A key that may write."""
    return api("write", tenant=Tenant.objects.get(id=keeper.tenant_id))


@pytest.fixture
def push(client: APIClient, connection: Connection, workers: Workers, syncs: Syncs) -> Push:
    """`push({…}, delete=[…])`: the results by external id; what is stored is indexed."""
    del syncs

    def send(*records: dict[str, Any], delete: list[str] | None = None, status: int = 200) -> Any:
        body = {"upsert": list(records), "delete": delete or []}
        with workers.commits():
            answer = client.generic(
                "POST",
                f"/api/v1/connections/{connection.id}/records/",
                json.dumps(body),
                content_type="application/json",
            )
        workers.drain()
        assert answer.status_code == status, answer.content
        return answer.json()

    return send


def record(external_id: str, content: str = "", **facts: Any) -> dict[str, Any]:
    return {"external_id": external_id, "content": content or f"About {external_id}.", **facts}


def outcomes(answer: Any) -> list[tuple[str, str]]:
    return [(one["external_id"], one["outcome"]) for one in answer["results"]]


def runs(connection: Connection) -> list[SyncRun]:
    with tenant_scope(connection.tenant_id):
        return list(connection.runs.order_by("created_at", "id"))


def test_pushed_records_become_documents_with_their_facts(
    push: Push, syncs: Syncs, connection: Connection
) -> None:
    answer = push(
        record(
            "a", "# Herons\n\nThey wade.", title="Herons", url="https://wiki.example/a",
            author="Ana", breadcrumbs=["Birds", "鸟"], created_at="2025-03-01T00:00:00Z",
            updated_at="2025-03-02T00:00:00+01:00", metadata={"space": "B", "n": [1]},
        ),
        record("b", "<p>Storks</p>", content_type="text/html"),
    )  # fmt: skip
    documents = syncs.documents()
    assert answer["results"] == [
        {"external_id": name, "outcome": "created", "document_id": str(documents[name].id), "error": ""}
        for name in ("a", "b")
    ]  # fmt: skip
    document = documents["a"]
    assert (document.status, document.title, document.author) == ("ready", "Herons", "Ana")
    assert (document.source, document.source_id) == ("push", connection.id)
    assert (document.source_uri, document.breadcrumbs) == (
        "https://wiki.example/a",
        ["Birds", "鸟"],
    )
    assert document.metadata["n"] == [1]
    assert document.source_updated_at is not None
    assert document.source_updated_at.isoformat() == "2025-03-01T23:00:00+00:00"
    assert documents["b"].filename.endswith(".html")
    run = runs(connection)[0]
    assert (run.kind, run.status, run.inserted) == ("push", "succeeded", 2)
    assert run.trigger.startswith("key test")


def test_the_same_again_does_no_work(
    push: Push, syncs: Syncs, connection: Connection, keeper: Actor
) -> None:
    first = push(record("a"), record("b", title="B"))
    before = syncs.documents()
    again = push(record("a"), record("b", title="B"))
    assert outcomes(again) == [("a", "unchanged"), ("b", "unchanged")]
    assert [one["document_id"] for one in again["results"]] == [
        one["document_id"] for one in first["results"]
    ]
    assert {name: one.indexed_at for name, one in syncs.documents().items()} == {
        name: one.indexed_at for name, one in before.items()
    }
    assert runs(connection)[1].kept == 2
    with tenant_scope(keeper.tenant_id):
        assert AuditEvent.objects.filter(action="connection.pushed").count() == 1


def test_new_content_and_new_facts_are_told_from_old_ones(
    push: Push, syncs: Syncs, keeper: Actor
) -> None:
    push(record("a", "Herons wade."), record("b", "Storks stand."))
    before = syncs.documents()
    answer = push(record("a", "Herons fly."), record("b", "Storks stand.", author="Bo"))
    assert outcomes(answer) == [("a", "updated"), ("b", "updated")]
    after = syncs.documents()
    assert {one.id for one in after.values()} == {one.id for one in before.values()}
    assert after["b"].author == "Bo"
    assert after["b"].indexed_at == before["b"].indexed_at
    with tenant_scope(keeper.tenant_id):
        contents = sorted(Chunk.objects.filter(live=True).values_list("content", flat=True))
    assert contents == ["Herons fly.", "Storks stand."]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"external_id": "bad"}, "content"),
        ({"external_id": "bad", "content": ""}, "content"),
        ({"external_id": "bad", "content": "x", "title": "x" * 501}, "title"),
        ({"external_id": "bad", "content": "x", "created_at": "yesterday"}, "created_at"),
        ({"external_id": "bad", "content": "x", "metadata": []}, "metadata"),
        ({"external_id": "bad", "content": "x", "metadata": {"a": "\x00"}}, "metadata"),
        ({"external_id": "bad", "content": "x", "metadata": {"a": ["\ud800"]}}, "metadata"),
        ({"external_id": "bad", "content": "x\ud800"}, "content"),
        ({"external_id": "bad", "content": "x", "principals": ["ana"]}, "principals"),
        ({"external_id": "bad", "content": "x", "breadcrumbs": ["x" * 301]}, "breadcrumbs"),
        ({"external_id": "bad", "content": "x", "content_type": "image/png"}, "image/png"),
        ({"content": "x"}, "external_id"),
        ({"external_id": "b\ud800", "content": "x"}, "external_id"),
    ],
)
def test_a_bad_record_names_its_field_and_leaves_the_others_whole(
    push: Push, syncs: Syncs, bad: dict[str, Any], named: str
) -> None:
    answer = push(record("a"), bad, record("c"))
    assert [one["outcome"] for one in answer["results"]] == ["created", "failed", "created"]
    assert named in answer["results"][1]["error"]
    assert answer["results"][1]["document_id"] is None
    assert set(syncs.documents()) == {"a", "c"}
    push(bad, status=400)


def test_a_bad_version_leaves_the_good_one(push: Push, syncs: Syncs) -> None:
    push(record("a", "Herons wade."))
    known = syncs.documents()["a"]
    answer = push(record("a", "x", content_type="image/png"), status=400)
    assert answer["results"][0]["document_id"] == str(known.id)
    assert syncs.items()["a"].status == "failed"
    assert outcomes(push(record("a", "Herons wade."))) == [("a", "unchanged")]
    assert syncs.items()["a"].status == "stored"


def test_deletions_are_done_without_a_question(push: Push, syncs: Syncs) -> None:
    push(*[record(f"{number}") for number in range(60)])
    answer = push(record("new"), delete=[*(f"{number}" for number in range(59)), "never"])
    assert outcomes(answer)[0] == ("new", "created")
    assert outcomes(answer)[-1] == ("never", "absent")
    assert {one["outcome"] for one in answer["results"][1:-1]} == {"deleted"}
    assert set(syncs.documents()) == {"59", "new"}
    assert set(syncs.items()) == {"59", "new"}


def test_the_last_record_of_an_id_counts(push: Push, syncs: Syncs) -> None:
    answer = push(record("a", title="Old"), record("a", title="New"))
    assert outcomes(answer) == [("a", "created"), ("a", "created")]
    assert syncs.documents()["a"].title == "New"


def test_what_is_sent_is_not_deleted_at_once(push: Push, syncs: Syncs) -> None:
    answer = push(record("a"), delete=["b", "a"], status=400)
    assert [error["field"] for error in answer["errors"]] == ["delete.1"]
    assert syncs.documents() == {}


def test_a_request_is_bounded(push: Push, connection: Connection) -> None:
    many = [record(f"{number}") for number in range(501)]
    assert [error["field"] for error in push(*many, status=400)["errors"]] == ["upsert"]
    names = [f"{number}" for number in range(501)]
    assert [error["field"] for error in push(delete=names, status=400)["errors"]] == ["delete"]
    assert push() == {"results": []}
    assert runs(connection) == []


def test_readers_are_the_tenants_own(push: Push, syncs: Syncs, connection: Connection) -> None:
    push(
        record("a", principals=["group:staff", "user:ana@example.com"]),
        record("b", principals=[]),
        record("c"),
        record("d", principals=None),
    )
    found = {name: one.principals for name, one in syncs.documents().items()}
    assert found == {
        "a": ["group:staff", "user:ana@example.com"], "b": [], "c": ["public"], "d": ["public"],
    }  # fmt: skip
    answer = push(record("a", principals=["public"]))
    assert outcomes(answer) == [("a", "updated")]
    with tenant_scope(connection.tenant_id):
        chunks = Chunk.objects.filter(document_id=syncs.documents()["a"].id)
        assert [chunk.principals for chunk in chunks] == [["public"]]
        Connection.objects.update(access="fixed", principals=["group:few"])
    push(record("a", principals=["public"]))
    assert syncs.documents()["a"].principals == ["group:few"]


def test_only_a_connection_that_is_pushed_to_takes_records(
    client: APIClient, connect: Connect
) -> None:
    address = f"/api/v1/connections/{connect('scripted').id}/records/"
    answer = client.post(address, {"upsert": [record("a")]})
    assert (answer.status_code, "push" in answer.json()["detail"]) == (400, True)


def test_a_paused_connection_takes_nothing(
    client: APIClient, push: Push, connection: Connection, syncs: Syncs
) -> None:
    client.post(f"/api/v1/connections/{connection.id}/pause/")
    assert push(record("a"), status=409)["detail"] == "The connection is paused. Resume it first."
    assert syncs.documents() == {}


def test_nothing_is_taken_while_a_run_goes_on(
    push: Push, connection: Connection, syncs: Syncs
) -> None:
    syncs.start(connection, SyncRun.Kind.REPLAY)
    push(record("a"), status=409)
    syncs.work()
    assert outcomes(push(record("a"))) == [("a", "created")]


def test_a_pull_finds_nothing_and_loses_nothing(
    push: Push, connection: Connection, syncs: Syncs, client: APIClient
) -> None:
    push(record("a"))
    assert syncs.run(connection, SyncRun.Kind.FULL).status == "succeeded"
    assert set(syncs.documents()) == {"a"}
    answer = client.post(f"/api/v1/connections/{connection.id}/check/").json()
    assert answer == {"ok": True, "message": "Ready: it waits for records to be pushed."}


def test_what_was_pushed_can_be_replayed(
    push: Push, connection: Connection, syncs: Syncs, keeper: Actor
) -> None:
    with tenant_scope(keeper.tenant_id):
        Connection.objects.update(keeps_capture=True)
    push(record("a", principals=["group:staff"]))
    run = syncs.run(connection, SyncRun.Kind.REPLAY)
    assert (run.status, run.kept) == ("succeeded", 1)
    assert syncs.documents()["a"].principals == ["group:staff"]


def test_a_key_for_retries_answers_again(
    client: APIClient, connection: Connection, syncs: Syncs
) -> None:
    address = f"/api/v1/connections/{connection.id}/records/"
    for replayed in (None, "true"):
        answer = client.post(address, {"upsert": [record("a")]}, headers={"Idempotency-Key": "1"})
        assert answer.json()["results"][0]["outcome"] == "created"
        assert answer.headers.get("Idempotency-Replayed") == replayed
    assert len(runs(connection)) == 1
    assert syncs.delayed == []


def test_a_push_takes_few_queries_for_what_is_unchanged(
    connection: Connection, keeper: Actor, django_assert_max_num_queries: Any
) -> None:
    records = [text(f"{number}") for number in range(20)]
    with tenant_scope(keeper.tenant_id):
        push_records(actor=keeper, connection=connection, records=records)
    with tenant_scope(keeper.tenant_id), django_assert_max_num_queries(40 + 20 * 5):
        again = push_records(actor=keeper, connection=connection, records=records)
    assert {one.outcome for one in again.values()} == {Outcome.UNCHANGED}
