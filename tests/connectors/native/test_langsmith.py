"""LangSmith's runs against its API description."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from config.errors import CredentialsError, RejectedError
from connectors.models import Connection
from connectors.native.langsmith import LangSmithConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Connect = Callable[..., Connection]
KEY = {"token": "lsv2_secret"}
NOW = datetime(2025, 6, 15, 12, tzinfo=UTC)
WORKSPACES = ("Acme", "Lab")


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


class Traces:
    """Two workspaces with a project each."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.projects = {uuid(1): [(uuid(11), "prod-bot")], uuid(2): [(uuid(21), "experiments")]}
        self.runs: dict[str, list[dict[str, Any]]] = {uuid(11): [], uuid(21): []}
        self.bodies: list[dict[str, Any]] = []
        self.failing: set[str] = set()
        vendor.on("GET /api/v1/workspaces", self.workspaces)
        vendor.on("GET /api/v1/sessions", self.sessions)
        vendor.on("POST /api/v1/runs/query", self.query)

    def run(self, project: int, number: int, hours_ago: float, **facts: Any) -> None:
        start = NOW - timedelta(hours=hours_ago)
        self.runs[uuid(project)].append({
            "id": uuid(number), "name": f"回答 {number}", "run_type": "chain", "status": "success",
            "start_time": start.isoformat(), "end_time": (start + timedelta(seconds=2)).isoformat(),
            "trace_id": uuid(number), "dotted_order": "x", "session_id": uuid(project), "app_path": f"/o/1/r/{number}",
            "inputs": {"question": "SECRET"}, "outputs": {"answer": "SECRET"}, "total_tokens": 42, **facts,
        })  # fmt: skip

    def workspaces(self, _: Asked, answer: Any) -> Any:
        example = answer[0] if answer else {}
        names = enumerate(WORKSPACES, start=1)
        return [
            {**example, "id": uuid(number), "display_name": name, "is_deleted": False, "created_at": NOW.isoformat(), "is_personal": False}
            for number, name in names
        ]  # fmt: skip

    def sessions(self, asked: Asked, _: Any) -> Any:
        workspace = asked.headers["x-tenant-id"]
        return [
            {"id": found, "name": name, "tenant_id": workspace}
            for found, name in self.projects[workspace]
        ]

    def query(self, asked: Asked, answer: Any) -> Any:
        self.bodies.append(asked.body)
        project = asked.body["session"][0]
        if project in self.failing:
            raise Refusal(403, {"detail": "no"})
        since = datetime.fromisoformat(asked.body["start_time"])
        wanted = [
            one for one in self.runs[project] if datetime.fromisoformat(one["start_time"]) >= since
        ]
        wanted = [one for one in wanted if one.get("error") or not asked.body.get("error")]
        wanted.sort(key=lambda one: str(one["start_time"]))
        some, after = pages(wanted, asked.body.get("cursor"), 2)
        return {**answer, "runs": some, "cursors": {"next": after or None}}


@pytest.fixture
def traces(vendor: StartVendor, monkeypatch: Any) -> Any:
    traces = Traces(vendor("langsmith"))
    monkeypatch.setattr(
        LangSmithConnector, "hosts", {"us": traces.vendor.url, "eu": traces.vendor.url}
    )
    with time_machine.travel(NOW, tick=False):
        yield traces


def connected(connect: Connect, **config: Any) -> Connection:
    return connect("langsmith", auth_method="token", credentials=KEY, config=config)


def text_of(syncs: Syncs, number: int) -> str:
    with syncs.documents()[uuid(number)].original.open() as file:
        return str(file.read().decode())


def test_runs_become_documents_without_what_went_in_and_out(
    traces: Traces, connect: Connect, syncs: Syncs
) -> None:
    traces.run(11, 101, 3, tags=["beta"])
    traces.run(11, 102, 2, status="error", error="ValueError: " + "é" * 5000, end_time=None)
    traces.run(21, 201, 24 * 30)
    run = syncs.run(connected(connect))
    assert (run.status, run.inserted) == ("succeeded", 2), "the third is older than seven days"
    document = syncs.documents()[uuid(101)]
    assert (document.title, document.breadcrumbs) == ("回答 101: success", ["Acme", "prod-bot"])
    assert (document.metadata["latency_s"], document.metadata["tokens"]) == (2.0, 42)
    assert "- tags: ['beta']" in text_of(syncs, 101)
    assert len(text_of(syncs, 102).partition("## Error")[2]) <= 2_010
    for one in (101, 102):
        assert "SECRET" not in text_of(syncs, one)
    assert all(
        not {"inputs", "outputs", "inputs_preview"} & set(body["select"]) for body in traces.bodies
    )
    assert all(body["is_root"] for body in traces.bodies)
    assert "lsv2_secret" not in json.dumps(traces.vendor.app.log[0]["query"])


def test_the_next_sync_reads_what_is_new(traces: Traces, connect: Connect, syncs: Syncs) -> None:
    connection = connected(connect)
    traces.run(11, 101, 30)
    traces.run(11, 102, 3, status="pending", end_time=None)
    syncs.run(connection)
    traces.run(11, 103, 1)
    traces.runs[uuid(11)][1]["status"] = "success"
    traces.bodies.clear()
    run = syncs.run(connection)
    assert (run.inserted, run.updated, run.kept) == (1, 1, 0)
    assert datetime.fromisoformat(traces.bodies[0]["start_time"]) == NOW - timedelta(hours=4)
    assert syncs.documents()[uuid(102)].title == "回答 102: success"


def test_a_bounded_sync_goes_on_where_it_stopped(
    traces: Traces, connect: Connect, syncs: Syncs
) -> None:
    connection = connected(connect, max_runs=3)
    for number in range(7):
        traces.run(11, 101 + number, 1 - number / 60)
    assert syncs.run(connection).inserted == 3
    assert syncs.run(connection).inserted == 2, "one is met again"
    assert syncs.run(connection).inserted == 2
    assert len(syncs.documents()) == 7


def test_a_failing_project_does_not_lose_the_others(
    traces: Traces, connect: Connect, syncs: Syncs
) -> None:
    traces.run(11, 101, 1)
    traces.run(21, 201, 1)
    traces.failing = {uuid(11)}
    connection = connected(connect)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("partial", 1)
    assert "prod-bot could not be read" in run.warnings[0]
    traces.failing.clear()
    assert syncs.run(connection).inserted == 1


def test_projects_workspaces_and_errors_are_chosen(
    traces: Traces, connect: Connect, syncs: Syncs
) -> None:
    for project in (11, 21):
        traces.run(project, project * 10, 1)
        traces.run(project, project * 10 + 1, 1, error="Boom")
    syncs.run(connected(connect, workspaces=["Acme"], projects=["prod-*"], errors_only=True))
    assert set(syncs.documents()) == {uuid(111)}


def test_a_run_is_resumed_after_a_long_wait(traces: Traces, connect: Connect, syncs: Syncs) -> None:
    for number in range(4):
        traces.run(11, 101 + number, 4 - number)
    whole = traces.query

    def breaking(asked: Asked, answer: Any) -> Any:
        if asked.body.get("cursor"):
            raise Refusal(429, headers={"Retry-After": "200"})
        return whole(asked, answer)

    traces.vendor.on("POST /api/v1/runs/query", breaking)
    run = syncs.run(connected(connect))
    assert (run.status, len(syncs.documents())) == ("queued", 2)
    traces.vendor.on("POST /api/v1/runs/query", whole)
    with time_machine.travel(NOW + timedelta(seconds=300), tick=False):
        syncs.work()
    assert (syncs.fresh(run).status, len(syncs.documents())) == ("succeeded", 4)


def test_check(traces: Traces) -> None:
    connector = make_connector(LangSmithConnector, {"region": "eu"}, KEY)
    assert connector.check() == "Acme, Lab"
    assert traces.vendor.app.log[0]["headers"]["x-api-key"] == "lsv2_secret"
    traces.vendor.refuse_next(401)
    with pytest.raises(CredentialsError):
        connector.check()
    with pytest.raises(RejectedError, match="none of these"):
        make_connector(LangSmithConnector, {"workspaces": ["Elsewhere"]}, KEY).check()
