"""Linear, against its schema: queries that it does not allow fail."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from config.errors import CredentialsError
from connectors.base import Checkpoint, Complete, Deletion, Record, Text
from connectors.manifest.connector import SearchableManifestConnector
from tests.connectors.manifest.site import from_catalog, ids, only, pulled, served
from tests.connectors.vendor import HOST, SPECS

pytestmark = [
    pytest.mark.shared,
    pytest.mark.allow_hosts([HOST]),
    pytest.mark.skipif(
        not SPECS.is_dir(), reason="needs the vendors' API descriptions (../shared/specs)"
    ),
]


def _mock() -> Any:
    spec = importlib.util.spec_from_file_location("gqlmock", SPECS / "gqlmock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.App((SPECS / "linear.graphql").read_text())


@pytest.fixture(scope="module")
def schema() -> Any:
    """Building it takes a while."""
    return _mock()


@pytest.fixture
def linear(schema: Any, settings: Any) -> Iterator[Any]:
    """A running one, empty; every query it gets must be allowed."""
    settings.GROUNDWORK_PRIVATE_HOSTS = [HOST]
    schema.log.clear()
    schema.data = {f"Query.{name}": connection([]) for name in ("issues", "projects", "documents")}
    with served(schema) as schema.url:
        yield schema
    assert [entry["errors"] for entry in schema.log if entry["errors"]] == []


def connection(nodes: list[dict[str, Any]], size: int = 2) -> Any:
    def page(args: dict[str, Any]) -> Any:
        start = int(args.get("after") or 0)
        after = start + size
        info = {"hasNextPage": after < len(nodes), "endCursor": str(after)}
        return {"nodes": nodes[start:after], "pageInfo": info}

    return page


def issue(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"i{number}", "identifier": f"BIR-{number}", "title": f"Herons {number}",
        "description": "苍鹭涉水。", "url": f"https://linear.app/x/BIR-{number}", "trashed": None,
        "updatedAt": f"2025-03-0{number}T10:00:00.000Z", "priorityLabel": "High",
        "creator": {"name": "Ana"}, "team": {"name": "Birds"}, "project": None,
        "labels": {"nodes": [{"name": "鸟"}]},
        "comments": {"nodes": [], "pageInfo": {"hasNextPage": False}}, **more,
    }  # fmt: skip


def opened(linear: Any) -> SearchableManifestConnector:
    connector = from_catalog("linear", f"{linear.url}/graphql", {}, {"token": "lin_api_x"})
    assert isinstance(connector, SearchableManifestConnector)
    return connector


def test_the_check_says_who_is_connected(linear: Any) -> None:
    linear.data |= {"Query.viewer": {"name": "Ana"}, "Query.organization": {"name": "Acme"}}
    assert opened(linear).check() == "Acme as Ana"


def test_a_first_sync_reads_everything(linear: Any) -> None:
    comment = {
        "body": "{{ 7*7 }} 第二",
        "createdAt": "2025-03-04T00:00:00Z",
        "user": {"name": "Bo"},
    }
    few = {"nodes": [comment], "pageInfo": {"hasNextPage": False}}
    linear.data |= {
        "Query.issues": connection([issue(1, comments=few), issue(2), issue(3, trashed=True)]),
        "Query.projects": connection([{"id": "p", "name": "Atlas", "content": "# Plan"}]),
        "Query.documents": connection([{"id": "d", "title": "Notes", "content": "Text"}]),
    }
    events = pulled(opened(linear))
    assert ids(events) == ["issue:i1", "issue:i2", "project:p", "document:d"]
    assert only(events, Deletion) == [Deletion("issue:i3")]
    assert [one.scope for one in only(events, Complete)] == ["issue", "project", "document"]
    record = only(events, Record)[0]
    assert isinstance(record.body, Text)
    assert record.body.text == (
        "# BIR-1 Herons 1\n\n苍鹭涉水。\n\n## Bo, 2025-03-04\n\n{{ 7*7 }} 第二"
    )
    assert (record.title, record.author, record.breadcrumbs) == (
        "BIR-1 Herons 1", "Ana", ("Birds",),
    )  # fmt: skip
    assert record.metadata["labels"] == ["鸟"]
    assert "filter" not in linear.log[0]["variables"]


def test_later_syncs_ask_for_changed_issues_and_comments(linear: Any) -> None:
    linear.data["Query.issues"] = connection([issue(1), issue(2)])
    connector = opened(linear)
    cursor = only(pulled(connector), Checkpoint)[-1].cursor
    linear.log.clear()
    pulled(connector, cursor)
    changed = {"updatedAt": {"gte": "2025-03-02T09:58:00Z"}}
    assert linear.log[0]["variables"]["filter"] == {
        "or": [changed, {"comments": {"some": changed}}]
    }
    assert linear.log[1]["variables"] == {}, "no project was there yet"


def test_many_comments_are_read_to_the_last(linear: Any) -> None:
    comments = [
        {"body": f"Comment {n}.", "createdAt": "2025-03-04", "user": None} for n in range(5)
    ]
    first = {"nodes": comments[:2], "pageInfo": {"hasNextPage": True}}
    linear.data |= {
        "Query.issues": connection([issue(1, comments=first)]),
        "Query.issue": {"id": "i1"},
        "Issue.comments": connection(comments),
    }
    # The mock has one answer for the field wherever it stands: also in the listing, so say there is more.
    body = only(pulled(opened(linear)), Record)[0].body
    assert isinstance(body, Text)
    assert [body.text.count(f"Comment {n}.") for n in range(5)] == [1] * 5
    assert "## Someone, 2025-03-04" in body.text


def test_searching_in_linear(linear: Any) -> None:
    linear.data["Query.searchIssues"] = {"nodes": [issue(1)]}
    hits = opened(linear).search("苍鹭", 3)
    assert [(hit.external_id, hit.title) for hit in hits] == [("issue:i1", "BIR-1 Herons 1")]
    assert linear.log[0]["variables"] == {"term": "苍鹭", "first": 3}


def test_a_refused_key_asks_for_another(linear: Any) -> None:
    linear.next = [{"status": 401}]
    with pytest.raises(CredentialsError):
        opened(linear).check()
