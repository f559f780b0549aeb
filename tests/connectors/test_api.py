"""Connectors, connections, runs and items over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection as database
from pydantic import SecretStr
from rest_framework.test import APIClient

from accounts.access import Actor
from accounts.models import Membership, Tenant
from accounts.tenancy import tenant_scope
from config.errors import RejectedError
from connectors.base import Complete
from connectors.models import Connection, SyncRun
from knowledge.models import Document, KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.conftest import ApiFactory
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import ScriptedConfig, ScriptedConnector, file, text
from tests.factories import make_key

Connect = Callable[..., Connection]
SECRET = "s3cret-t0ken"
SCOPE = 4  # queries to enter and leave a tenant's scope inside of a test's transaction


@pytest.fixture
def client(api: ApiFactory, keeper: Actor) -> APIClient:
    """A key that may write, of the tenant with the base."""
    return api("read", "write", tenant=Tenant.objects.get(id=keeper.tenant_id))


def address(row: Any, *rest: str) -> str:
    place = "sync-runs" if isinstance(row, SyncRun) else "connections"
    return "/".join([f"/api/v1/{place}", str(row.id), *rest, ""])


def faults(answer: Any) -> list[str]:
    assert answer.status_code == 400
    return [error["field"] for error in answer.json()["errors"]]


# --- the catalogue -----------------------------------------------------------------------------


@pytest.mark.usefixtures("keeper")
def test_the_catalogue_says_what_a_connector_needs(client: APIClient) -> None:
    found = client.get("/api/v1/connectors/scripted/").json()
    assert found["name"] == "Scripted"
    assert found["config"]["properties"]["word"]["type"] == "string"
    assert found["default_schedule"] == {"every_minutes": 60}
    assert found["capabilities"] == ["deletions", "incremental"]
    none, token = found["auth"]
    assert (none["name"], none["oauth"], none["credentials"]["properties"]) == ("none", False, {})
    assert token["credentials"]["properties"]["token"]["format"] == "password"
    assert client.get("/api/v1/connectors/push/").json()["default_schedule"] == {}
    assert client.get("/api/v1/connectors/nothing/").status_code == 404


def test_the_catalogue_is_searched_by_words_and_asks_the_database_for_the_key_only(
    client: APIClient, django_assert_num_queries: Any
) -> None:
    client.get("/api/v1/connectors/")
    with django_assert_num_queries(1):
        listed = client.get("/api/v1/connectors/").json()["results"]
    kinds = [one["kind"] for one in listed]
    assert kinds == sorted(kinds)
    assert {"folder", "push", "scripted"} <= set(kinds)
    found = client.get("/api/v1/connectors/", {"search": "FOLDER files"}).json()["results"]
    assert "folder" in [one["kind"] for one in found]
    assert client.get("/api/v1/connectors/", {"search": "folder nonsense"}).json()["results"] == []


# --- connections -------------------------------------------------------------------------------


def test_a_connection_is_made_and_never_shows_its_credentials(
    client: APIClient, base: KnowledgeBase
) -> None:
    body = {
        "connector": "scripted", "knowledge_base": base.slug, "name": "Wiki", "config": {"word": "x"},
        "auth_method": "token", "credentials": {"token": SECRET}, "principals": ["group:staff"],
        "access": "fixed", "deletion_guard_percent": 5, "keeps_capture": True,
        "full_schedule": {"cron": "0 3 * * 0"},
    }  # fmt: skip
    made = client.post("/api/v1/connections/", body)
    assert made.status_code == 201
    known = made.json()
    assert known["has_credentials"] is True
    assert (known["status"], known["schedule"]) == ("active", {"every_minutes": 60})
    assert known["counts"] == {"stored": 0, "failed": 0, "skipped": 0, "gone": 0, "not_indexed": 0}
    assert known["last_run"] is None
    shown = {**body, "credentials": None}
    assert {name: known.get(name) for name in shown} == shown
    answers = [
        made,
        client.get(f"/api/v1/connections/{known['id']}/"),
        client.get("/api/v1/connections/"),
        client.patch(f"/api/v1/connections/{known['id']}/", {"credentials": {"token": SECRET}}),
        client.patch(
            f"/api/v1/connections/{known['id']}/", {"credentials": {"token": {"x": SECRET}}}
        ),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 400]
    assert all(SECRET not in answer.content.decode() for answer in answers)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"connector": "nothing"}, "connector"),
        ({"connector": None}, "connector"),
        ({"knowledge_base": "nothing"}, "knowledge_base"),
        ({"config": {"nothing": 1}}, "config.nothing"),
        ({"config": {"word": "\x00"}}, "config"),
        ({"config": {"word": "\ud800"}}, "config"),
        ({"config": []}, "config"),
        ({"auth_method": "magic"}, "auth_method"),
        ({"auth_method": "token", "credentials": {"tokken": SECRET}}, "credentials.token"),
        ({"schedule": {"every_minutes": 0}}, "schedule"),
        ({"full_schedule": {"cron": "nonsense"}}, "full_schedule"),
        ({"access": "everyone"}, "access"),
        ({"principals": ["ana"]}, "principals.0"),
        ({"deletion_guard_percent": 0}, "deletion_guard_percent"),
        ({"name": "x" * 201}, "name"),
    ],
)
def test_bad_input_names_the_field(
    client: APIClient, base: KnowledgeBase, change: dict[str, Any], field: str
) -> None:
    body = {"connector": "scripted", "knowledge_base": str(base.id), "name": "Wiki", **change}
    answer = client.generic(
        "POST", "/api/v1/connections/", json.dumps(body), content_type="application/json"
    )
    assert field in faults(answer)
    assert SECRET not in answer.content.decode()


def test_a_name_is_taken_once_in_a_base(client: APIClient, connect: Connect) -> None:
    first, second = connect(name="Wiki"), connect(name="Other")
    assert faults(client.patch(address(second), {"name": "Wiki"})) == ["name"]
    assert client.patch(address(first), {"name": "Wiki"}).status_code == 200


def test_a_change_takes_config_and_credentials_as_a_whole(
    client: APIClient, connect: Connect, syncs: Syncs
) -> None:
    connection = connect(
        config={"word": "x"}, auth_method="token", credentials={"token": SECRET}, name="Wiki"
    )
    changed = client.patch(
        address(connection), {"config": {}, "schedule": {}, "credentials": {"token": "new"}}
    ).json()
    assert (changed["config"], changed["schedule"], changed["name"]) == ({"word": ""}, {}, "Wiki")
    assert syncs.fresh(connection).credentials == {"token": "new"}
    assert client.patch(address(connection), {"credentials": {}}).json()["has_credentials"] is False


def test_secret_texts_of_a_configuration_are_hidden(
    client: APIClient, connect: Connect, monkeypatch: Any
) -> None:
    class SecretConfig(ScriptedConfig):
        key: SecretStr = SecretStr("")
        other: SecretStr | None = None

    connection = connect()
    with tenant_scope(connection.tenant_id):
        Connection.objects.update(config={"word": "x", "key": SECRET, "other": SECRET})
    spec = replace(ScriptedConnector.spec, config=SecretConfig)
    monkeypatch.setattr(ScriptedConnector, "spec", spec)
    answer = client.get(address(connection))
    assert answer.json()["config"]["word"] == "x"
    assert SECRET not in answer.content.decode()


def test_a_connection_of_a_connector_that_is_gone_is_still_listed(
    client: APIClient, connect: Connect
) -> None:
    connection = connect(config={"word": SECRET})
    with tenant_scope(connection.tenant_id):
        Connection.objects.update(connector="former")
    answer = client.get("/api/v1/connections/")
    assert [one["connector"] for one in answer.json()["results"]] == ["former"]
    assert SECRET not in answer.content.decode()
    assert client.post(address(connection, "check")).status_code == 404


def test_the_list_is_narrowed(client: APIClient, connect: Connect, keeper: Actor) -> None:
    connect("scripted", name="a")
    paused = connect("restricted", name="b")
    assert client.post(address(paused, "pause")).json()["status"] == "paused"
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")

    def names(**wanted: str) -> list[str]:
        answer = client.get("/api/v1/connections/", wanted)
        return [one["name"] for one in answer.json()["results"]]

    assert names() == ["b", "a"]
    assert names(connector="scripted") == ["a"]
    assert names(status="paused") == ["b"]
    assert names(knowledge_base="main") == ["b", "a"]
    assert names(knowledge_base=str(other.id)) == []
    assert faults(client.get("/api/v1/connections/", {"status": "dead"})) == ["status"]
    assert client.get("/api/v1/connections/", {"knowledge_base": "x"}).status_code == 404


def test_a_page_of_connections_takes_as_many_queries_as_one(
    client: APIClient, connect: Connect, syncs: Syncs, django_assert_num_queries: Any
) -> None:
    rows = [connect(name=f"{number}") for number in range(4)]
    syncs.play(rows[0], text("a"), file("b", RejectedError("Too large.")))
    syncs.play(rows[0], text("a"))
    syncs.play(rows[1], text("c"))
    client.get("/api/v1/connectors/")  # the first use of a key is written down
    with django_assert_num_queries(3 + SCOPE):  # the key, connections with counts, last runs
        listed = client.get("/api/v1/connections/").json()["results"]
    assert [one["counts"]["stored"] for one in listed] == [0, 0, 1, 1]
    assert listed[3]["counts"]["failed"] == 1
    assert listed[3]["last_run"]["status"] == "succeeded"
    assert listed[3]["last_run"]["counts"]["kept"] == 1
    assert listed[3]["last_synced_at"] is not None


def test_a_key_bound_to_another_base_sees_no_connection(
    connect: Connect, keeper: Actor, base: KnowledgeBase
) -> None:
    connection = connect()
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    tenant = Tenant.objects.get(id=keeper.tenant_id)
    _, key = make_key(tenant=tenant, scopes=["write"], knowledge_base_ids=[other.id])
    bound = APIClient()
    bound.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    assert bound.get("/api/v1/connections/").json()["results"] == []
    assert bound.get(address(connection)).status_code == 404
    body = {"connector": "scripted", "knowledge_base": base.slug}
    assert faults(bound.post("/api/v1/connections/", body)) == ["knowledge_base"]


def test_a_stranger_gets_404(
    connect: Connect, syncs: Syncs, stranger: Membership, api: ApiFactory
) -> None:
    connection = connect()
    run = syncs.play(connection, file("a", RejectedError("No.")))
    item = syncs.items()["a"]
    theirs = api("read", "write", tenant=stranger.tenant)
    for rest in ([], ["browse"], ["runs"], ["items"]):
        assert theirs.get(address(connection, *rest)).status_code == 404
    posts = (
        ["check"], ["sync"], ["pause"], ["resume"], ["retry-failed"], ["approve-deletions"],
        ["records"], ["items", str(item.id), "retry"],
    )  # fmt: skip
    for rest in posts:
        assert theirs.post(address(connection, *rest)).status_code == 404
    assert theirs.patch(address(connection), {"name": "Mine"}).status_code == 404
    assert theirs.delete(address(connection)).status_code == 404
    assert theirs.get(address(run)).status_code == 404
    assert theirs.post(address(run, "cancel")).status_code == 404


def test_who_only_reads_sees_the_catalogue_but_no_connection(
    api: ApiFactory, keeper: Actor, connect: Connect
) -> None:
    connection = connect()
    reader = api("read", tenant=Tenant.objects.get(id=keeper.tenant_id))
    assert reader.get("/api/v1/connectors/").status_code == 200
    assert reader.get("/api/v1/connections/").status_code == 403
    assert reader.get(address(connection)).status_code == 403


@pytest.mark.parametrize("kept", [True, False])
def test_deleting_keeps_the_documents_when_asked(
    client: APIClient, connect: Connect, syncs: Syncs, keeper: Actor, *, kept: bool
) -> None:
    connection = connect()
    syncs.play(connection, text("a"))
    query = "?keep_documents=true" if kept else ""
    assert client.delete(address(connection) + query).status_code == 204
    assert client.get(address(connection)).status_code == 404
    with tenant_scope(keeper.tenant_id):
        assert Document.objects.filter(replaces=None, source_id=None).count() == int(kept)
        assert Document.objects.count() == int(kept)


def test_a_connection_that_runs_is_not_deleted(
    client: APIClient, connect: Connect, syncs: Syncs
) -> None:
    connection = connect()
    syncs.start(connection)
    assert client.delete(address(connection)).status_code == 409
    assert faults(client.delete(address(connection) + "?keep_documents=perhaps")) == [
        "keep_documents"
    ]


# --- the source --------------------------------------------------------------------------------


def test_a_check_says_what_was_reached_without_holding_a_scope(
    client: APIClient, connect: Connect, monkeypatch: Any
) -> None:
    outer = len(database.savepoint_ids)  # of the test's own transaction
    seen = []

    def check(_self: Any) -> str:
        seen.append(len(database.savepoint_ids))
        return "Reached."

    monkeypatch.setattr(ScriptedConnector, "check", check)
    answer = client.post(address(connect(), "check"))
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "message": "Reached."})
    assert seen == [outer]


def test_a_failed_check_is_a_problem(client: APIClient, connect: Connect, monkeypatch: Any) -> None:
    unfinished = connect(auth_method="token", name="unfinished")
    assert faults(client.post(address(unfinished, "check"))) == ["credentials.token"]

    def check(_self: Any) -> str:
        raise RejectedError("There is no such space.")

    monkeypatch.setattr(ScriptedConnector, "check", check)
    answer = client.post(address(connect(), "check"))
    assert (answer.status_code, answer.json()["detail"]) == (502, "There is no such space.")


def test_places_are_browsed(
    client: APIClient, connect: Connect, tmp_path: Path, settings: Any
) -> None:
    settings.GROUNDWORK_LOCAL_FOLDERS = [str(tmp_path)]
    (tmp_path / "handbook" / "travel").mkdir(parents=True)
    connection = connect("folder", config={"path": str(tmp_path)})
    roots = client.get(address(connection, "browse")).json()["results"]
    assert roots == [
        {"id": "handbook", "title": "handbook", "has_children": True, "selectable": True}
    ]
    below = client.get(address(connection, "browse"), {"parent": "handbook"}).json()["results"]
    assert [one["id"] for one in below] == ["handbook/travel"]
    answer = client.get(address(connect(), "browse"))
    assert (answer.status_code, "no places" in answer.json()["detail"]) == (400, True)


# --- runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"), [({}, "incremental"), ({"full": True}, "full"), ({"replay": True}, "replay")]
)
def test_a_sync_is_queued_and_answered_with_its_run(
    client: APIClient, connect: Connect, syncs: Syncs, body: dict[str, bool], kind: str
) -> None:
    connection = connect()
    answer = client.post(address(connection, "sync"), body)
    assert answer.status_code == 202
    run = answer.json()
    assert (run["kind"], run["status"], run["connection"]) == (kind, "queued", str(connection.id))
    assert run["trigger"].startswith("key test")
    assert run["duration_s"] is None
    assert client.post(address(connection, "sync")).status_code == 409
    cancelled = client.post(f"/api/v1/sync-runs/{run['id']}/cancel/")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert client.post(f"/api/v1/sync-runs/{run['id']}/cancel/").status_code == 409
    assert syncs.documents() == {}


def test_full_and_replay_exclude_each_other(client: APIClient, connect: Connect) -> None:
    answer = client.post(address(connect(), "sync"), {"full": True, "replay": True})
    assert faults(answer) == ["replay"]


def test_a_paused_connection_starts_nothing(client: APIClient, connect: Connect) -> None:
    connection = connect()
    client.post(address(connection, "pause"))
    answer = client.post(address(connection, "sync"))
    assert (answer.status_code, "paused" in answer.json()["detail"]) == (409, True)
    assert client.post(address(connection, "resume")).json()["status"] == "active"
    assert client.post(address(connection, "sync")).status_code == 202


def test_runs_are_listed_newest_first(
    client: APIClient, connect: Connect, syncs: Syncs, django_assert_num_queries: Any
) -> None:
    connection = connect()
    syncs.play(connection, text("a"), text("b"))
    last = syncs.play(connection, text("a"), file("c", RejectedError("Too large.")))
    client.get("/api/v1/connectors/")
    with django_assert_num_queries(3 + SCOPE):  # the key, the connection, its runs
        runs = client.get(address(connection, "runs")).json()["results"]
    assert [run["status"] for run in runs] == ["partial", "succeeded"]
    assert runs[1]["counts"] == {"inserted": 2, "updated": 0, "kept": 0, "deleted": 0, "failed": 0}
    shown = client.get(address(last)).json()
    assert {**shown, "duration_s": 0} == {**runs[0], "duration_s": 0}
    assert shown["duration_s"] >= 0


# --- items -------------------------------------------------------------------------------------


def test_items_tell_where_they_failed(
    client: APIClient, connect: Connect, syncs: Syncs, django_assert_num_queries: Any
) -> None:
    connection = connect()
    syncs.play(
        connection,
        text("a"),
        file("b", RejectedError("Too large.")),
        file("c", b"%PDF-1.4 broken", filename="c.pdf"),
        file("d", filename="d.jpg"),
    )
    client.get("/api/v1/connectors/")
    with django_assert_num_queries(3 + SCOPE):  # the key, the connection, its items
        items = client.get(address(connection, "items")).json()["results"]
    found = {one["external_id"]: (one["status"], one["stage"]) for one in items}
    assert found == {
        "a": ("stored", ""), "b": ("failed", "fetch"), "c": ("stored", "index"), "d": ("skipped", ""),
    }  # fmt: skip
    a, b, c, d = items
    documents = syncs.documents()
    assert (a["document_id"], c["document_id"]) == (
        str(documents["a"].id),
        str(documents["c"].id),
    )
    assert (b["error"], c["error"]) == ("Too large.", documents["c"].error)
    assert d["document_id"] is None
    failed = client.get(address(connection, "items"), {"status": "failed"}).json()["results"]
    assert [one["external_id"] for one in failed] == ["b", "c"]
    skipped = client.get(address(connection, "items"), {"status": "skipped"}).json()["results"]
    assert [one["external_id"] for one in skipped] == ["d"]
    assert faults(client.get(address(connection, "items"), {"status": "odd"})) == ["status"]
    counts = client.get(address(connection)).json()["counts"]
    assert counts == {"stored": 2, "failed": 1, "skipped": 1, "gone": 0, "not_indexed": 1}


def test_items_come_in_pages(client: APIClient, connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    syncs.play(connection, *[text(name) for name in "edcba"])
    page = client.get(address(connection, "items"), {"limit": 3}).json()
    rest = client.get(page["next"]).json()
    names = [one["external_id"] for one in page["results"] + rest["results"]]
    assert (names, rest["next"]) == (list("abcde"), None)


def test_failed_items_are_tried_again(client: APIClient, connect: Connect, syncs: Syncs) -> None:
    connection, other = connect(name="a"), connect(name="b")
    syncs.play(connection, text("a"), file("b", RejectedError("Too large.")))
    items = syncs.items()
    failed = str(items["b"].id)
    assert client.post(address(other, "items", failed, "retry")).status_code == 404
    assert client.post(address(connection, "items", str(uuid4()), "retry")).status_code == 404
    assert client.post(address(connection, "items", str(items["a"].id), "retry")).status_code == 409
    one = client.post(address(connection, "items", failed, "retry"))
    assert (one.status_code, one.json()["kind"]) == (202, "retry")
    client.post(f"/api/v1/sync-runs/{one.json()['id']}/cancel/")
    every = client.post(address(connection, "retry-failed"))
    assert (every.status_code, every.json()["kind"]) == (202, "retry")


def test_an_item_that_could_not_be_indexed_is_not_read_again(
    client: APIClient, connect: Connect, syncs: Syncs
) -> None:
    connection = connect()
    syncs.play(connection, file("c", b"%PDF-1.4 broken", filename="c.pdf"))
    item = str(syncs.items()["c"].id)
    answer = client.post(address(connection, "items", item, "retry"))
    assert (answer.status_code, "indexed" in answer.json()["detail"]) == (409, True)


def test_held_deletions_are_approved(client: APIClient, connect: Connect, syncs: Syncs) -> None:
    connection = connect()
    many = [text(f"{number}") for number in range(40)]
    syncs.play(connection, *many, Complete())
    run = syncs.play(connection, *many[:10], Complete())
    assert client.get(address(run)).json()["held_deletions"] == 30
    assert client.get(address(connection)).json()["counts"]["gone"] == 30
    assert client.post(address(connection, "approve-deletions")).json() == {"deleted": 30}
    assert len(syncs.documents()) == 10


def test_the_schema_names_every_route_once_and_no_credentials_in_answers(client: APIClient) -> None:
    schema = client.get("/api/schema/", {"format": "json"}).json()
    paths = [path for path in schema["paths"] if "/connect" in path or "/sync-runs" in path]
    assert len(paths) == 17
    shown = schema["components"]["schemas"]["Connection"]["properties"]
    assert "credentials" not in shown
    assert {"counts", "last_run", "has_credentials"} <= set(shown)
    assert "credentials" in schema["components"]["schemas"]["NewConnection"]["properties"]
    assert not schema["paths"]["/api/v1/hooks/{id}/"]["post"].get("security")
