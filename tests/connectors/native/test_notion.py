"""Notion's pages against its API description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from config.errors import CredentialsError
from connectors.base import Deletion, Record
from connectors.models import Connection, SyncRun
from connectors.native.notion.connector import NotionConnector
from connectors.native.notion.rendering import render_blocks, render_property
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Connect = Callable[..., Connection]
TOKEN = {"token": "ntn_secret"}
ANA = "d40e767c-d7af-4b18-a86d-55c61f1e39a4"
FULL = SyncRun.Kind.FULL


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def rich(text: str, href: str | None = None, **marks: bool) -> list[dict[str, Any]]:
    part = {"type": "text", "text": {"content": text}, "plain_text": text, "annotations": marks}
    return [{**part, "href": href} if href else part]


def block(number: int, kind: str, text: str = "", **content: Any) -> dict[str, Any]:
    children = content.pop("has_children", False)
    return {
        "object": "block", "id": uuid(number), "type": kind, "has_children": children,
        kind: {"rich_text": rich(text), **content} if text else content,
    }  # fmt: skip


@dataclass
class Workspace:
    """A workspace whose pages are shared with the integration."""

    vendor: Vendor
    things: dict[str, dict[str, Any]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # rows that the search forgets
    blocks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def page(self, number: int, title: str, *, edited: str = "2025-06-01T10:00", parent: Any = None, **properties: Any) -> None:  # fmt: skip
        self.things[uuid(number)] = {
            "object": "page", "id": uuid(number), "created_time": "2025-01-01T09:00:00.000Z",
            "last_edited_time": f"{edited}:00.000Z", "created_by": {"object": "user", "id": ANA},
            "last_edited_by": {"object": "user", "id": ANA}, "archived": False,
            "parent": parent or {"type": "workspace", "workspace": True},
            "url": f"https://www.notion.so/p{number}",
            "properties": {"Name": {"type": "title", "title": rich(title)}, **properties},
        }  # fmt: skip
        self.blocks.setdefault(uuid(number), [block(number * 100, "paragraph", f"{title}。正文")])

    def source(self, number: int, title: str, edited: str = "2025-06-01T10:00") -> None:
        self.page(number, title, edited=edited)
        columns = {
            "Bird": {"type": "title", "title": {}},
            "Status": {"type": "status", "status": {}},
        }
        self.things[uuid(number)] |= {
            "object": "data_source", "title": rich(title), "description": rich("All birds"),
            "properties": columns, "parent": {"type": "database_id", "database_id": uuid(number + 1)},
        }  # fmt: skip

    def search(self, asked: Asked, answer: Any) -> Any:
        shown = [one for one in self.things.values() if one["id"] not in self.hidden]
        shown.sort(key=lambda one: str(one["last_edited_time"]), reverse=True)
        query = asked.body.get("query", "")
        found = [one for one in shown if query in str(one.get("title") or one["properties"])]
        return _page(found, asked.body.get("start_cursor"), answer)

    def rows(self, asked: Asked, answer: Any) -> Any:
        source = asked.path["data_source_id"]
        found = [
            one for one in self.things.values() if one["parent"].get("data_source_id") == source
        ]
        return _page(found, asked.body.get("start_cursor"), answer)

    def children(self, asked: Asked, answer: Any) -> Any:
        name = asked.path["block_id"]
        if name in self.broken:
            raise Refusal(400, {"object": "error", "code": "validation_error"})
        return _page(self.blocks.get(name, []), asked.query.get("start_cursor"), answer)

    def thing(self, name: str, kind: str) -> Callable[[Asked, Any], Any]:
        def get(asked: Asked, _: Any) -> Any:
            found = self.things.get(asked.path[name])
            if found is None or found["object"] != kind:
                raise Refusal(404, {"object": "error", "code": "object_not_found"})
            return found

        return get


def _page(found: list[Any], cursor: Any, answer: Mapping[str, Any]) -> dict[str, Any]:
    some, after = pages(found, cursor, 2)
    return {**answer, "results": some, "has_more": bool(after), "next_cursor": after or None}


@pytest.fixture
def workspace(vendor: StartVendor, monkeypatch: Any) -> Workspace:
    notion = Workspace(vendor("notion"))
    monkeypatch.setattr(NotionConnector, "base_url", notion.vendor.url)
    on = notion.vendor.on
    on("POST /v1/search", notion.search)
    on("POST /v1/data_sources/{data_source_id}/query", notion.rows)
    on("GET /v1/blocks/{block_id}/children", notion.children)
    on("GET /v1/pages/{page_id}", notion.thing("page_id", "page"))
    on("GET /v1/data_sources/{data_source_id}", notion.thing("data_source_id", "data_source"))
    on("GET /v1/databases/{database_id}", notion.thing("database_id", "database"))
    on("GET /v1/comments", lambda asked, answer: _page(notion.comments.get(asked.query["block_id"], []), None, answer))  # fmt: skip
    on("GET /v1/users", lambda _, answer: {**answer, "has_more": False})
    return notion


@pytest.fixture
def connection(connect: Connect, workspace: Workspace) -> Connection:
    return connect("notion", auth_method="token", credentials=TOKEN)


def text_of(syncs: Syncs, number: int) -> str:
    with syncs.documents()[uuid(number)].original.open() as file:
        return str(file.read().decode())


def test_pages_and_databases_become_documents(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.source(1, "Birds")
    workspace.page(
        3, "苍鹭", edited="2025-06-02T08:00", parent={"type": "data_source_id", "data_source_id": uuid(1)},
        Status={"type": "status", "status": {"name": "Seen"}}, Count={"type": "number", "number": 3},
        Empty={"type": "select", "select": None},
    )  # fmt: skip
    workspace.page(4, "Nests", parent={"type": "page_id", "page_id": uuid(3)})
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 3)
    heron = syncs.documents()[uuid(3)]
    assert (heron.title, heron.author, heron.breadcrumbs) == ("苍鹭", "Avocado Lovelace", ["Birds"])
    assert (heron.metadata["Status"], heron.metadata["Count"]) == ("Seen", 3)
    assert heron.metadata["author_email"] == "avo@example.org"
    assert heron.source_uri == "https://www.notion.so/p3"
    assert text_of(syncs, 3) == "# 苍鹭\n\n- **Status**: Seen\n- **Count**: 3\n\n苍鹭。正文"
    assert syncs.documents()[uuid(4)].breadcrumbs == ["Birds", "苍鹭"]
    assert "All birds\n\n- Bird: title\n- Status: status" in text_of(syncs, 1)
    versions = {one["headers"]["notion-version"] for one in workspace.vendor.app.log}
    assert versions == {"2025-09-03"}


def test_the_next_run_stops_at_what_it_knows(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    for number in range(1, 9):
        workspace.page(number, f"Page {number}", edited=f"2025-06-{number:02d}T10:00")
    assert syncs.run(connection).inserted == 8
    workspace.vendor.forget()
    workspace.page(2, "Page 2, edited", edited="2025-06-09T10:00")
    workspace.blocks[uuid(2)] = [block(1, "paragraph", "Storks.")]
    run = syncs.run(connection)
    assert (run.updated, run.kept, run.deleted) == (1, 1, 0)
    assert len(workspace.vendor.asked("POST /v1/search")) == 2, "of four pages"
    assert len(workspace.vendor.asked("GET /v1/blocks/{block_id}/children")) == 1
    assert "Storks." in text_of(syncs, 2)


def test_trash_and_what_is_no_longer_listed_go(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    for number in range(1, 5):
        workspace.page(number, f"Page {number}")
    syncs.run(connection)
    workspace.things[uuid(1)] |= {"in_trash": True, "last_edited_time": "2025-06-02T10:00:00.000Z"}
    del workspace.things[uuid(2)]
    assert syncs.run(connection).deleted == 1
    assert syncs.run(connection, kind=FULL).deleted == 1
    assert set(syncs.documents()) == {uuid(3), uuid(4)}


def test_rows_that_the_search_forgets_are_found(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.source(1, "Birds")
    for number in range(3, 7):
        row = {"type": "data_source_id", "data_source_id": uuid(1)}
        workspace.page(number, f"Row {number}", parent=row)
    workspace.hidden = {uuid(4), uuid(6)}
    assert syncs.run(connection).inserted == 5
    workspace.vendor.on("POST /v1/data_sources/{data_source_id}/query", refuse)
    run = syncs.run(connection, kind=FULL)
    assert (run.status, run.deleted) == ("partial", 0), "a listing with a hole deletes nothing"
    assert "could not be listed" in run.warnings[0]


def refuse(_asked: Asked, _answer: Any) -> Any:
    raise Refusal(404, {"object": "error"})


def test_a_page_that_fails_is_kept_and_read_later(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.page(1, "One")
    workspace.page(2, "Two")
    syncs.run(connection)
    workspace.broken = {uuid(1)}
    workspace.page(1, "One, edited", edited="2025-06-05T10:00")
    run = syncs.run(connection)
    assert (run.status, run.failed) == ("partial", 1)
    assert len(syncs.documents()) == 2
    workspace.broken.clear()
    run = syncs.run(connection, kind=SyncRun.Kind.RETRY)
    assert (run.status, run.updated) == ("succeeded", 1)
    assert syncs.documents()[uuid(1)].title == "One, edited"


def test_only_what_lies_below_the_chosen_places(
    workspace: Workspace, connect: Connect, syncs: Syncs
) -> None:
    workspace.page(1, "Team")
    workspace.page(2, "Plan", parent={"type": "page_id", "page_id": uuid(1)})
    workspace.page(3, "Private")
    workspace.source(5, "Birds")
    link = f"https://www.notion.so/acme/Team-{uuid(1).replace('-', '')}?pvs=4"
    config = {"below": [link], "databases": False}
    syncs.run(connect("notion", config=config, auth_method="token", credentials=TOKEN))
    assert set(syncs.documents()) == {uuid(1), uuid(2)}


def test_comments_come_below_the_text(workspace: Workspace, connect: Connect, syncs: Syncs) -> None:
    workspace.page(1, "One")
    workspace.comments[uuid(1)] = [
        {"object": "comment", "id": uuid(7), "created_time": "2025-06-03T10:00:00.000Z",
         "created_by": {"object": "user", "id": ANA}, "rich_text": rich("好的", bold=True)}
    ]  # fmt: skip
    syncs.run(connect("notion", config={"comments": True}, auth_method="token", credentials=TOKEN))
    assert "## Comments\n\n- **Avocado Lovelace** (2025-06-03): **好的**" in text_of(syncs, 1)


def test_a_listing_that_breaks_off_waits_and_goes_on(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    for number in range(1, 6):
        workspace.page(number, f"Page {number}")
    whole = workspace.search

    def breaking(asked: Asked, answer: Any) -> Any:
        if asked.body.get("start_cursor") == "2":
            raise Refusal(429, {}, {"Retry-After": "120"})
        return whole(asked, answer)

    workspace.vendor.on("POST /v1/search", breaking)
    run = syncs.run(connection)
    assert (run.status, len(syncs.documents())) == ("queued", 2)
    workspace.vendor.on("POST /v1/search", whole)
    workspace.vendor.forget()
    from django.utils import timezone

    from accounts.tenancy import tenant_scope

    with tenant_scope(connection.tenant_id):
        SyncRun.objects.update(not_before=timezone.now())
    syncs.work()
    assert (syncs.fresh(run).status, len(syncs.documents())) == ("succeeded", 5)
    assert len(workspace.vendor.asked("GET /v1/blocks/{block_id}/children")) == 3, (
        "known ones are not read"
    )


def test_refused_credentials_end_the_run(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.vendor.refuse_next(401, {"object": "error", "code": "unauthorized"})
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "remote_credentials")


def test_check_search_and_fetch(workspace: Workspace) -> None:
    workspace.page(1, "苍鹭 herons", Status={"type": "status", "status": {"name": "Seen"}})
    workspace.page(2, "Storks")
    connector = make_connector(NotionConnector, credentials=TOKEN)
    assert connector.check() == "pied piper"
    hits = connector.search("苍鹭", 5)
    assert [(hit.external_id, hit.text) for hit in hits] == [(uuid(1), "苍鹭 herons\nStatus: Seen")]
    fetched = list(connector.fetch([uuid(2), uuid(9)]))
    assert isinstance(fetched[0], Record)
    assert fetched[1] == Deletion(uuid(9))
    workspace.vendor.refuse_next(401)
    with pytest.raises(CredentialsError):
        connector.check()


def test_blocks_become_markdown() -> None:
    below = {
        "root": [
            block(1, "heading_1", "Herons"),
            block(2, "bulleted_list_item", "Grey", has_children=True),
            block(3, "bulleted_list_item", "White"),
            block(4, "to_do", "Count", checked=True),
            block(5, "code", "a = 1\n\nb = 2", language="python"),
            block(6, "table", has_children=True),
            block(7, "column_list", has_children=True),
            block(8, "bookmark", url="https://a.example", caption=rich("A")),
            block(9, "child_page", title="Apart", has_children=True),
            block(10, "image", type="file", file={"url": "https://signed.example"}, caption=rich("Photo")),
            {"object": "block", "id": uuid(11), "type": "paragraph", "has_children": False,
             "paragraph": {"rich_text": [*rich("See "), *rich("this ", href="https://b.example", italic=True), *rich("鸟。")]}},
            block(12, "unsupported"),
        ],
        uuid(2): [block(21, "numbered_list_item", "Nested")],
        uuid(6): [block(61, "table_row", cells=[rich("A|B"), rich("C")]), block(62, "table_row", cells=[rich("1"), []])],
        uuid(7): [block(71, "column", has_children=True)],
        uuid(71): [block(72, "paragraph", "In a column")],
        uuid(9): [block(91, "paragraph", "not here")],
    }  # fmt: skip
    assert render_blocks("root", lambda name: below.get(name, [])) == (
        "# Herons\n\n- Grey\n\n    1. Nested\n\n- White\n- [x] Count\n\n"
        "```python\na = 1\n\nb = 2\n```\n\n| A\\|B | C |\n| --- | --- |\n| 1 |  |\n\n"
        "In a column\n\n[A](https://a.example)\n\n- Apart\n\nPhoto\n\nSee [*this*](https://b.example) 鸟。"
    )


def test_depth_and_number_of_blocks_are_bounded() -> None:
    def endless(_: str) -> list[dict[str, Any]]:
        return [block(1, "toggle", "Deeper", has_children=True)] * 2

    text = render_blocks("root", endless)
    assert text.count("…") > 1
    assert text.count("Deeper") <= 5_000


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"type": "multi_select", "multi_select": [{"name": "红"}, {"name": "b"}]}, ["红", "b"]),
        ({"type": "date", "date": {"start": "2025-01-01", "end": "2025-01-02"}}, "2025-01-01 – 2025-01-02"),
        ({"type": "formula", "formula": {"type": "number", "number": 0}}, 0),
        ({"type": "checkbox", "checkbox": False}, False),
        ({"type": "rollup", "rollup": {"type": "array", "array": [{"type": "number", "number": 1}]}}, ["1"]),
        ({"type": "unique_id", "unique_id": {"prefix": "T", "number": 7}}, "T-7"),
        ({"type": "people", "people": [{"name": "Ana"}, {"id": "x"}]}, ["Ana"]),
        ({"type": "relation", "relation": [{"id": "x"}]}, None),
        ({"type": "from the future", "from the future": {"a": 1}}, None),
    ],
)  # fmt: skip
def test_properties(value: dict[str, Any], shown: Any) -> None:
    assert render_property(value) == shown
