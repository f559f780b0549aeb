"""Confluence's own API descriptions, of version 2 and 1: spaces with pages, comments and attachments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from config.errors import CredentialsError, InvalidInputError, RateLimitedError
from connectors.base import (
    Checkpoint,
    Complete,
    Cursor,
    Deletion,
    Event,
    File,
    Membership,
    Notice,
    Record,
    Text,
)
from connectors.models import Connection
from connectors.native.atlassian.confluence import ConfluenceConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
_CQL = "GET /wiki/rest/api/content/search"


class _Both:
    """Both versions of the API on one host."""

    def __init__(self, second: Any, first: Any) -> None:
        self._second, self._first = second, first

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        app = self._first if environ["PATH_INFO"].startswith("/wiki/rest/") else self._second
        return app(environ, start)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._second, name)


class Wiki:
    """Pages, blog posts, comments and attachments by id, each in a space."""

    def __init__(self, second: Vendor, first: Vendor) -> None:
        self.server, self.first = second, first
        self.spaces = {"1": "BIRD", "2": "FISH"}
        self.rows: dict[str, dict[str, Any]] = {}
        self.changed: set[str] = set()  # as the index knows
        self.refused: set[str] = set()
        self.readers: dict[str, list[dict[str, str]]] = {}
        second.app = _Both(second.app, first.app)
        second.on("GET /spaces", self._spaces)
        second.on("GET /spaces/{id}", self._space)
        second.on("GET /spaces/{id}/pages", lambda asked, _: self._listed(asked, "page"))
        second.on("GET /spaces/{id}/blogposts", lambda asked, _: self._listed(asked, "blogpost"))
        second.on("GET /pages", lambda asked, _: self._named(asked, "page"))
        second.on("GET /pages/{id}", lambda asked, _: self._second(self._one(asked)))
        second.on("GET /attachments/{id}", self._attachment)
        second.on("GET /blogposts", lambda asked, _: self._named(asked, "blogpost"))
        first.on(_CQL, self._cql)
        first.on("GET /wiki/rest/api/user/current", {"type": "known", "displayName": "Ana"})
        self.group("g1", "bo@example.com", "Cy@example.com")
        self.group("g2", "cy@example.com", "di@example.com")
        second.files["/wiki/rest/api/user"] = b'{"email": "ana@example.com"}'

    def group(self, key: str, *people: str) -> None:
        """Who is in a group."""
        rows = [{"email": person} for person in (*people, "")]
        path = f"/wiki/rest/api/group/{key}/membersByGroupId"
        self.server.files[path] = json.dumps({"results": rows}).encode()

    def add(
        self, key: str, title: str, kind: str = "page", *, space: str = "1", **facts: Any
    ) -> None:
        """Write something."""
        self.rows[key] = {
            "id": key, "type": kind, "title": title, "space": space, "text": f"关于{title}。", "number": 1,
            "above": [], "labels": [], "allowed": ([], []), "in": "", **facts,
        }  # fmt: skip

    def _spaces(self, asked: Asked, answer: Any) -> Any:
        page, after = pages(list(self.spaces.items()), asked.query.get("cursor"), 1)
        rows = [
            {"id": key, "key": name, "name": f"Space {name}", "type": "global", "status": "current"}
            for key, name in page
        ] + [{"id": "9", "key": "~ana", "name": "Ana", "type": "personal", "status": "current"}]
        return {"results": rows, "_links": _next("/wiki/api/v2/spaces", after)}

    def _space(self, asked: Asked, answer: Any) -> Any:
        assert asked.query == {"include-permissions": "true"}
        key = asked.path["id"]
        default = [{"type": "group", "id": "g1"}, {"type": "user", "id": "a1"}]
        permissions = [
            {"id": str(n), "principal": one, "operation": {"key": operation, "targetType": "space"}}
            for n, one in enumerate(self.readers.get(key, default))
            for operation in ("read", "archive")
        ]
        return {"id": key, "key": self.spaces[key], "permissions": {"results": permissions}}

    def _listed(self, asked: Asked, kind: str) -> Any:
        key = asked.path["id"]
        if key in self.refused:
            raise Refusal(403)
        found = [one for one in self.rows.values() if (one["type"], one["space"]) == (kind, key)]
        page, after = pages(found, asked.query.get("cursor"), 2)
        path = f"/wiki/api/v2/spaces/{key}/{kind}s"
        return {"results": [self._second(one) for one in page], "_links": _next(path, after)}

    def _named(self, asked: Asked, kind: str) -> Any:
        ids = asked.query["id"].split(",")
        found = [self._second(one) for one in self.rows.values() if one["id"] in ids]
        return {"results": found, "_links": {}}

    def _one(self, asked: Asked) -> dict[str, Any]:
        if asked.path["id"] not in self.rows:
            raise Refusal(404)
        return self.rows[asked.path["id"]]

    def _attachment(self, asked: Asked, _: Any) -> Any:
        one = self._one(asked)
        facts = {"mediaType": "text/plain", "fileSize": 6, "pageId": one["in"]}
        return {
            "id": one["id"],
            "title": one["title"],
            "version": {"number": one["number"]},
            **facts,
        }

    def _second(self, one: dict[str, Any]) -> Any:
        return {
            "id": one["id"], "title": one["title"], "spaceId": one["space"], "status": "current",
            "createdAt": "2025-01-01T00:00:00Z", "version": {"number": one["number"], "createdAt": "2025-01-02T00:00:00Z"},
            "body": {"atlas_doc_format": {"representation": "atlas_doc_format", "value": _document(one["text"])}},
            "_links": {"webui": f"/spaces/X/pages/{one['id']}"},
        }  # fmt: skip

    def _cql(self, asked: Asked, _: Any) -> Any:
        cql = asked.query["cql"]
        found = list(self.rows.values())
        if match := re.search(r"id in \(([^)]*)\)", cql):
            found = [one for one in found if one["id"] in match[1].split(", ")]
        if match := re.search(r"type = (\w+)", cql):
            found = [one for one in found if one["type"] == match[1]]
        if match := re.search(r'space = "(\w+)"', cql):
            found = [one for one in found if self.spaces[one["space"]] == match[1]]
        if "lastmodified" in cql:
            found = [one for one in found if one["id"] in self.changed]
        page, after = pages(found, asked.query.get("cursor"), 2)
        links = _next("/rest/api/content/search", after)
        return {"results": [self._first(one) for one in page], "size": len(page), "_links": links}

    def _first(self, one: dict[str, Any]) -> Any:
        body = {"value": _document(one["text"]), "representation": "atlas_doc_format"}
        row = {
            "id": one["id"], "type": one["type"], "status": "current", "title": one["title"],
            "space": {"key": self.spaces[one["space"]], "name": "", "status": "", "type": "", "_expandable": {}, "_links": {}},
            "version": {"number": one["number"], "when": "2025-01-02T00:00:00Z", "minorEdit": False},
            "history": {"latest": True, "createdBy": {"type": "known", "displayName": "Bo"}},
            "metadata": {"labels": {"results": [{"name": name, "prefix": "", "id": "", "label": name} for name in one["labels"]], "size": 1}},
            "ancestors": [self._restricted(self.rows[key]) for key in one["above"]],
            "extensions": {"mediaType": "text/plain", "fileSize": 6}, "body": {"atlas_doc_format": body},
            "_links": {"webui": f"/x/{one['id']}"},
        }  # fmt: skip
        if one["in"]:
            row["container"] = {"id": one["in"], "title": self.rows[one["in"]]["title"]}
        return row | self._restricted(one)

    def _restricted(self, one: dict[str, Any]) -> Any:
        users, groups = one["allowed"]
        named = {
            "user": {"results": [{"type": "known", "email": user} for user in users], "start": 0, "limit": 9, "size": 1},
            "group": {"results": [{"type": "group", "name": key, "id": key} for key in groups], "start": 0, "limit": 9, "size": 1},
        }  # fmt: skip
        read = {"operation": "read", "restrictions": named, "_expandable": {}, "_links": {}}
        return {
            "id": one["id"], "type": "page", "status": "current", "title": one["title"],
            "restrictions": {"read": read},
        } | ({"type": one["type"]})  # fmt: skip


def _next(path: str, after: str) -> dict[str, str]:
    return {"next": f"{path}?limit=2&cursor={after}"} if after else {}


def _document(text: str) -> str:
    content = [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]
    return json.dumps({"type": "doc", "version": 1, "content": content})


@pytest.fixture
def wiki(vendor: StartVendor) -> Wiki:
    return Wiki(vendor("confluence"), vendor("confluence_v1"))


def made(wiki: Wiki, **config: Any) -> ConfluenceConnector:
    """A connector to it."""
    secrets = {"email": "ana@example.com", "token": "t"}
    return make_connector(ConfluenceConnector, {"site": wiki.server.url, **config}, secrets)


def pull(connector: ConfluenceConnector, cursor: Cursor | None = None) -> list[Event]:
    """Everything of a run."""
    return list(connector.pull(cursor or {}))


def records(events: list[Event]) -> dict[str, Record]:
    """Records by id."""
    return {one.external_id: one for one in events if isinstance(one, Record)}


def end(events: list[Event]) -> Cursor:
    """The last position."""
    last = events[-1]
    assert isinstance(last, Checkpoint)
    return last.cursor


def text(record: Record) -> str:
    """What is said in it."""
    assert isinstance(record.body, Text)
    return record.body.text


def readers(wiki: Wiki, key: str) -> list[str]:
    """Who reads something."""
    return sorted(records(pull(made(wiki)))[key].principals or ())


def fill(wiki: Wiki) -> None:
    """A small wiki."""
    wiki.add("10", "鸟类", labels=["wild"])
    wiki.add("11", "苍鹭", above=["10"])
    wiki.add("12", "News", "blogpost")
    wiki.add("13", "Remark", "comment", **{"in": "11"})
    wiki.add("att14", "苍鹭.txt", "attachment", **{"in": "11"})
    wiki.add("20", "Carp", space="2")


def test_everything_of_a_space_is_read(wiki: Wiki) -> None:
    fill(wiki)
    path = "/wiki/rest/api/content/11/child/attachment/att14/download"
    wiki.server.files[path] = "苍鹭".encode()
    events = pull(made(wiki))
    found = records(events)
    assert set(found) == {"10", "11", "12", "13", "att14", "20"}
    page = found["11"]
    assert (page.title, text(page), page.version, page.author) == ("苍鹭", "关于苍鹭。", "1", "Bo")
    assert page.breadcrumbs == ("Space BIRD", "鸟类")
    assert page.url == f"{wiki.server.url}/wiki/spaces/X/pages/11"
    assert found["10"].metadata["labels"] == ["wild"]
    assert (found["13"].title, found["13"].breadcrumbs) == ("Re: 苍鹭", ("Space BIRD", "苍鹭"))
    attached = found["att14"].body
    assert isinstance(attached, File)
    with attached.open() as file:
        assert file.read().decode() == "苍鹭"
    assert {one.scope for one in events if isinstance(one, Complete)} == {"1", "2"}
    assert set(end(events)["spaces"]["1"]) == {"since"}


def test_parts_may_be_left_out(wiki: Wiki) -> None:
    fill(wiki)
    bare = made(wiki, spaces=["bird"], blog_posts=False, comments=False, attachments=False)
    assert set(records(pull(bare))) == {"10", "11"}
    assert set(records(pull(made(wiki, exclude_spaces=["BIRD"])))) == {"20"}
    with pytest.raises(InvalidInputError, match="FROG"):
        made(wiki, spaces=["FROG"]).check()
    assert any(isinstance(one, Notice) for one in pull(made(wiki, spaces=["FROG"])))
    assert made(wiki).check() == f"Ana on {wiki.server.url}: 2 spaces"


def test_a_later_run_reads_what_was_changed(wiki: Wiki) -> None:
    fill(wiki)
    cursor = end(pull(made(wiki)))
    wiki.rows["11"] |= {"text": "新的。", "number": 2}
    wiki.changed = {"11", "13"}
    wiki.server.forget()
    events = pull(made(wiki), cursor)
    found = records(events)
    assert set(found) == {"11", "13"}
    assert (found["11"].version, text(found["11"])) == ("2", "新的。")
    assert not [one for one in events if isinstance(one, Complete)]
    assert wiki.server.asked("GET /spaces/{id}/pages") == []
    assert re.search(r'lastmodified >= now\("-1[01]m"\)', wiki.first.asked(_CQL)[-1]["cql"])


def test_a_listing_goes_on_where_it_was_broken_off(wiki: Wiki) -> None:
    for number in range(5):
        wiki.add(f"1{number}", f"Page {number}")
    first = next(one for one in made(wiki).pull({}) if isinstance(one, Checkpoint))
    events = pull(made(wiki), first.cursor)
    assert set(records(events)) == {"12", "13", "14"}
    assert Complete("1") not in events
    assert Complete("2") in events


def test_one_bad_space_does_not_lose_the_others(wiki: Wiki) -> None:
    fill(wiki)
    wiki.refused = {"1"}
    events = pull(made(wiki))
    assert set(records(events)) == {"20"}
    assert [one.message for one in events if isinstance(one, Notice)] == [
        "BIRD could not be read completely. 127.0.0.1 does not allow this (403)."
    ]
    assert Complete("1") not in events
    wiki.refused = set()
    assert Complete("1") in pull(made(wiki), end(events)), "its next run is a whole one"


def test_a_space_that_is_gone_is_swept(wiki: Wiki) -> None:
    fill(wiki)
    cursor = end(pull(made(wiki)))
    del wiki.spaces["2"], wiki.rows["20"]
    assert Complete("2") in pull(made(wiki), cursor)


def test_who_may_view_a_space_reads_its_pages(wiki: Wiki) -> None:
    fill(wiki)
    assert readers(wiki, "11") == ["group:g1", "user:ana@example.com"]
    assert readers(wiki, "13") == ["group:g1", "user:ana@example.com"]
    assert set(made(wiki, spaces=["BIRD"]).memberships()) == {
        Membership("group:g1", "user:bo@example.com"),
        Membership("group:g1", "user:cy@example.com"),
    }


def test_permissions_beyond_the_first_ones_are_asked_for(wiki: Wiki) -> None:
    fill(wiki)
    read = {"key": "read", "targetType": "space"}
    rows = [
        {"principal": {"type": "group", "id": "g2"}, "operation": read},
        {"principal": {"type": "role", "id": "r1"}, "operation": read},
    ]
    path = "/wiki/api/v2/spaces/1/permissions"
    wiki.server.files[path] = json.dumps({"results": rows}).encode()

    def space(asked: Asked, _: Any) -> Any:
        return {"id": asked.path["id"], "permissions": {"results": [], "meta": {"hasMore": True}}}

    wiki.server.on("GET /spaces/{id}", space)
    assert sorted(records(pull(made(wiki, spaces=["BIRD"])))["11"].principals or ()) == ["group:g2"]


def test_restrictions_leave_readers_out(wiki: Wiki) -> None:
    fill(wiki)
    wiki.rows["11"]["allowed"] = (["ana@example.com", "eve@example.com"], [])
    assert readers(wiki, "11") == ["user:ana@example.com"]
    assert readers(wiki, "att14") == ["user:ana@example.com"]
    wiki.rows["11"]["allowed"] = (["bo@example.com"], ["g2"])
    assert readers(wiki, "11") == ["user:bo@example.com", "user:cy@example.com"]
    wiki.rows["11"]["allowed"] = ([], ["g1"])
    assert readers(wiki, "11") == ["group:g1"]
    wiki.rows["11"]["allowed"] = ([""], [])
    assert readers(wiki, "11") == [], "someone who is not shown by name"


def test_restrictions_above_hold_too(wiki: Wiki) -> None:
    fill(wiki)
    wiki.rows["10"]["allowed"] = (["ana@example.com", "bo@example.com"], [])
    wiki.rows["11"]["allowed"] = ([], ["g1"])
    assert readers(wiki, "11") == ["user:bo@example.com"]


def test_what_the_index_does_not_know_is_for_nobody(wiki: Wiki) -> None:
    fill(wiki)

    def empty(_asked: Asked, _: Any) -> Any:
        return {"results": [], "size": 0, "_links": {}}

    wiki.first.on(_CQL, empty)
    assert records(pull(made(wiki)))["11"].principals is None


def test_attachments_are_read_anew(wiki: Wiki) -> None:
    fill(wiki)
    again = list(made(wiki).fetch(["att14", "11", "att99"]))
    assert [type(one) for one in again] == [Record, Deletion]
    record = records(again)["att14"]
    assert (record.title, record.version, record.scope) == ("苍鹭.txt", "1", "1")
    assert record.breadcrumbs == ("Space BIRD", "苍鹭")
    assert record.principals == records(pull(made(wiki)))["att14"].principals
    assert [node.id for node in made(wiki).browse("")] == ["BIRD", "FISH"]


def test_the_source_is_searched_within_what_is_configured(wiki: Wiki) -> None:
    hit = {
        "content": {"id": "11", "type": "page", "status": "current", "title": "苍鹭"}, "title": "苍鹭",
        "excerpt": "在湖边", "url": "/spaces/BIRD/pages/11", "lastModified": "2025-01-02T00:00:00Z",
        "entityType": "content", "iconCssClass": "", "friendlyLastModified": "", "score": 1.0, "breadcrumbs": [],
    }  # fmt: skip

    def found(_asked: Asked, answer: Any) -> Any:
        return {**answer, "results": [hit]}

    wiki.first.on("GET /wiki/rest/api/search", found)
    hits = made(wiki, spaces=["BIRD"]).search('苍鹭" or space = "SECRET', 5)
    assert [(one.external_id, one.text) for one in hits] == [("11", "在湖边")]
    asked = wiki.first.asked("GET /wiki/rest/api/search")[0]["cql"]
    assert (
        asked == 'text ~ "苍鹭 or space SECRET" and type in (page, blogpost) and space in ("BIRD")'
    )


def test_limits_and_refusals_say_what_to_do(wiki: Wiki) -> None:
    wiki.server.refuse_next(429, Retry_After="90")
    with pytest.raises(RateLimitedError):
        pull(made(wiki))
    wiki.first.refuse_next(401)
    with pytest.raises(CredentialsError):
        made(wiki).check()


def test_a_run_stores_updates_and_deletes(
    wiki: Wiki, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    fill(wiki)
    connection = connect(
        "confluence",
        config={"site": wiki.server.url, "attachments": False},
        auth_method="token",
        credentials={"email": "ana@example.com", "token": "t"},
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 5, "")
    space = f"group:confluence:{connection.id.hex[:12]}"
    assert syncs.documents()["11"].principals == [f"{space}:g1", "user:ana@example.com"]
    wiki.rows["11"] |= {"text": "新的。", "number": 2}
    wiki.changed = {"11"}
    run = syncs.run(connection)
    assert (run.status, run.updated, run.deleted) == ("succeeded", 1, 0)
    del wiki.rows["12"]
    run = syncs.run(connection, kind=type(run).Kind.FULL)
    assert (run.status, run.kept, run.deleted) == ("succeeded", 4, 1)
