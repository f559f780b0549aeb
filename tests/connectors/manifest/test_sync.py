"""Manifests under the engine: what a person sees in the base after runs that go well and badly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from connectors import registry
from connectors.models import Connection, SyncRun
from tests.connectors.conftest import Syncs
from tests.connectors.manifest.site import Call, Reply, Site, manifest, stream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.allow_hosts(["127.0.0.1"])]
PAGED = {"records": "items", "pagination": {"style": "cursor", "next": "next"}}


@pytest.fixture
def connection(
    site: Site, connect: Callable[..., Connection], monkeypatch: Any, tmp_path: Path
) -> Iterator[Connection]:
    """Issues with comments, in pages of two."""
    comments = {"name": "comments", "path": "/issues/{{ record.id }}/comments", "when": "count"}
    body = "{{ record.body }} {{ attached.comments | path('[].text') | text }}"
    one = stream(
        "issue", complete=True, attach=[comments], mapping={"body": body, "updated_at": "at"},
        incremental={"field": "at", "param": "since", "overlap_seconds": 1}, **PAGED,
    )  # fmt: skip
    monkeypatch.setattr(registry, "CATALOG", tmp_path)
    (tmp_path / "any.yml").write_text(yaml.safe_dump(manifest(one, url=site.url)))
    registry.connector_class.cache_clear()
    yield connect("any", auth_method="token", credentials={"token": "s3cret"})
    registry.connector_class.cache_clear()


def issue(number: int, at: str = "2025-03-01T10:00:00Z", **more: Any) -> dict[str, Any]:
    return {"id": number, "title": f"T{number}", "body": f"苍鹭 {number}", "at": at, **more}


def serve(site: Site, records: list[dict[str, Any]], broken: str = "") -> None:
    def listing(call: Call) -> Any:
        wanted = [one for one in records if one["at"] >= call.query.get("since", "")]
        at = call.query.get("cursor", "0")
        if at == broken:
            return Reply({}, 429, {"Retry-After": "90"})
        after = int(at) + 2
        next_page = str(after) if after < len(wanted) else None
        return {"items": wanted[int(at) : after], "next": next_page}

    site.routes["/issues"] = listing


def test_syncs_follow_the_source(connection: Connection, syncs: Syncs, site: Site) -> None:
    records = [issue(n) for n in range(1, 6)]
    serve(site, records)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 5)
    records[0] = issue(1, "2025-03-02T00:00:00Z", body="{{ 7*7 }}")
    del records[4]
    run = syncs.run(connection)
    assert (run.updated, run.kept, run.deleted) == (1, 3, 0), "changes tell nothing of deletions"
    run = syncs.run(connection, SyncRun.Kind.FULL)
    assert (run.updated, run.kept, run.deleted) == (0, 4, 1)
    assert set(syncs.documents()) == {f"issue:{n}" for n in range(1, 5)}


def test_a_run_that_waits_loses_and_deletes_nothing(
    connection: Connection, syncs: Syncs, site: Site, keeper: Actor
) -> None:
    records = [issue(n) for n in range(1, 7)]
    serve(site, records)
    syncs.run(connection)
    serve(site, records, broken="2")
    run = syncs.start(connection, SyncRun.Kind.FULL)
    syncs.work()
    assert syncs.fresh(run).status == "queued"
    serve(site, records)
    with tenant_scope(keeper.tenant_id):
        SyncRun.objects.update(not_before=timezone.now())
    site.calls.clear()
    syncs.work()
    run = syncs.fresh(run)
    assert site.asked("/issues") == [{"cursor": "2"}, {"cursor": "4"}], "it went on where it was"
    assert (run.status, run.kept, run.deleted) == ("succeeded", 6, 0)


def test_comments_that_fail_leave_the_document(
    connection: Connection, syncs: Syncs, site: Site
) -> None:
    serve(site, [issue(1, count=1), issue(2)])
    site.routes["/issues/1/comments"] = [{"text": "Yes."}]
    syncs.run(connection)
    before = syncs.documents()["issue:1"].content_hash
    site.routes["/issues/1/comments"] = Reply({}, 403)
    run = syncs.run(connection, SyncRun.Kind.FULL)
    assert (run.status, run.failed, run.deleted) == ("partial", 1, 0)
    assert syncs.documents()["issue:1"].content_hash == before
    assert syncs.items()["issue:1"].status == "failed"
