"""Streams of X against its API description."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from config.errors import CredentialsError, RejectedError
from connectors.models import Connection, SyncRun
from connectors.native.x import XConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import (
    Asked,
    Handler,
    Refusal,
    StartVendor,
    Vendor,
    make_connector,
    pages,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Connect = Callable[..., Connection]
TOKEN = {"token": "x-secret"}
NUMBERS = dict.fromkeys(
    (
        "like_count",
        "repost_count",
        "reply_count",
        "quote_count",
        "bookmark_count",
        "impression_count",
    ),
    0,
)
ANA = {"id": "7", "name": "安娜", "username": "ana"}


class Posts:
    """Posts by stream, the newest first."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.streams: dict[str, list[dict[str, Any]]] = {}
        self.failing: dict[str, Refusal] = {}
        vendor.on("GET /2/users/me", lambda _, answer: {"data": {**answer.get("data", {}), **ANA}})
        vendor.on("GET /2/users/by/username/{username}", self.account)
        for operation, stream in (
            ("GET /2/users/{id}/tweets", "posts"), ("GET /2/users/{id}/mentions", "mentions"),
            ("GET /2/users/{id}/bookmarks", "bookmarks"), ("GET /2/lists/{id}/tweets", "list"),
        ):  # fmt: skip
            vendor.on(operation, self.stream(stream))

    def post(self, stream: str, number: int, text: str = "", **facts: Any) -> None:
        self.streams.setdefault(stream, []).insert(0, {
            "id": str(number), "text": text or f"Post {number}", "author_id": "7", "lang": "en",
            "created_at": "2025-06-01T10:00:00.000Z", "conversation_id": str(number), **facts,
        })  # fmt: skip

    def account(self, asked: Asked, _: Any) -> Any:
        if asked.path["username"] != "bo":
            return {"errors": []}
        return {"data": {"id": "8", "name": "Bo", "username": "bo"}}

    def stream(self, name: str) -> Handler:
        def answered(asked: Asked, _: Any) -> Any:
            stream = "account" if asked.path["id"] == "8" else name
            if stream in self.failing:
                raise self.failing[stream]
            since = int(asked.query.get("since_id", 0))
            wanted = [one for one in self.streams.get(stream, []) if int(one["id"]) > since]
            some, after = pages(wanted, asked.query.get("pagination_token"), 2)
            meta = {"result_count": len(some), **({"next_token": after} if after else {})}
            return {"data": some, "includes": {"users": [ANA]}, "meta": meta}

        return answered


@pytest.fixture
def posts(vendor: StartVendor, monkeypatch: Any) -> Posts:
    posts = Posts(vendor("x"))
    monkeypatch.setattr(XConnector, "base_url", posts.vendor.url)
    return posts


def connected(connect: Connect, *streams: str, **config: Any) -> Connection:
    config = {"streams": list(streams), **config}
    return connect("x", auth_method="token", credentials=TOKEN, config=config)


def text_of(syncs: Syncs, number: int) -> str:
    with syncs.documents()[str(number)].original.open() as file:
        return str(file.read().decode())


def test_posts_become_documents(posts: Posts, connect: Connect, syncs: Syncs) -> None:
    urls = [
        {
            "url": "https://t.co/a",
            "expanded_url": "https://herons.example/nests",
            "start": 0,
            "end": 1,
        }
    ]
    metrics = {**NUMBERS, "like_count": 3}
    posts.post(
        "posts",
        10,
        "看苍鹭 &amp; more https://t.co/a",
        entities={"urls": urls},
        public_metrics=metrics,
    )
    posts.post("mentions", 11, "Short…", note_post={"text": "A long post. " * 40})
    run = syncs.run(connected(connect, "posts", "mentions"))
    assert (run.status, run.inserted) == ("succeeded", 2)
    document = syncs.documents()["10"]
    assert document.title == "@ana: 看苍鹭 & more https://herons.example/nests"
    assert document.source_uri == "https://x.com/ana/status/10"
    assert (document.author, document.metadata["like_count"], document.metadata["stream"]) == (
        "安娜",
        3,
        "posts",
    )
    assert text_of(syncs, 10) == "看苍鹭 & more https://herons.example/nests"
    assert text_of(syncs, 11).startswith("A long post. A long post.")


def test_the_next_sync_asks_for_what_is_newer(posts: Posts, connect: Connect, syncs: Syncs) -> None:
    connection = connected(connect, "posts", "mentions", list_ids=["99"], accounts=["@bo"])
    for number in (10, 11, 12):
        posts.post("posts", number)
        posts.post("list", number + 100)
        posts.post("account", number + 200)
    assert syncs.run(connection).inserted == 9
    posts.vendor.forget()
    posts.post("posts", 13)
    posts.post("list", 113)
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.kept) == ("succeeded", 2, 0)
    asked = posts.vendor.asked("GET /2/users/{id}/tweets")
    assert [one["since_id"] for one in asked] == ["12", "212"]
    assert len(posts.vendor.asked("GET /2/lists/{id}/tweets")) == 1, "it stops at what it knows"
    assert syncs.fresh(connection).cursor == {
        "latest": {"posts": "13", "mentions": "0", "list:99": "113", "account:bo": "212"}
    }


def test_pages_are_bounded_and_gaps_are_told(posts: Posts, connect: Connect, syncs: Syncs) -> None:
    connection = connected(connect, "posts")
    for number in range(10, 20):
        posts.post("posts", number)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 4), "two pages of two"
    for number in range(20, 26):
        posts.post("posts", number)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("partial", 4)
    assert run.warnings == [
        "posts had more new posts than are read in a sync; older ones were left out."
    ]


def test_bookmarks_are_read_anew_and_changed_numbers_change_facts_only(
    posts: Posts, connect: Connect, syncs: Syncs
) -> None:
    posts.post("bookmarks", 5, public_metrics=NUMBERS)
    posts.post("bookmarks", 3)
    connection = connected(connect, "bookmarks")
    syncs.run(connection)
    posts.streams["bookmarks"][1]["public_metrics"] = {**NUMBERS, "like_count": 9}
    posts.post("bookmarks", 4)
    run = syncs.run(connection)
    assert (run.inserted, run.updated, run.kept) == (1, 1, 1)
    assert syncs.documents()["5"].metadata["like_count"] == 9


def test_a_failing_stream_does_not_lose_the_others(
    posts: Posts, connect: Connect, syncs: Syncs
) -> None:
    posts.post("mentions", 10)
    posts.failing = {"bookmarks": Refusal(403, {"title": "Forbidden"})}
    run = syncs.run(connected(connect, "bookmarks", "mentions", accounts=["nobody"]))
    assert (run.status, run.inserted) == ("partial", 1)
    assert "bookmarks could not be read" in run.warnings[0]
    assert "nobody" in run.warnings[1]


def test_a_stream_that_breaks_off_is_read_again(
    posts: Posts, connect: Connect, syncs: Syncs
) -> None:
    posts.post("posts", 10)
    posts.post("mentions", 11)
    posts.failing = {"mentions": Refusal(429, headers={"Retry-After": "900"})}
    connection = connected(connect, "posts", "mentions")
    run = syncs.run(connection)
    assert (run.status, set(syncs.documents())) == ("queued", {"10"})
    posts.failing.clear()
    posts.vendor.forget()
    from django.utils import timezone

    from accounts.tenancy import tenant_scope

    with tenant_scope(connection.tenant_id):
        SyncRun.objects.update(not_before=timezone.now())
    syncs.work()
    assert (syncs.fresh(run).status, set(syncs.documents())) == ("succeeded", {"10", "11"})
    assert posts.vendor.asked("GET /2/users/{id}/tweets")[0]["since_id"] == "10"


def test_the_home_timeline_is_read(posts: Posts, connect: Connect, syncs: Syncs) -> None:
    # The description at hand lacks this operation.
    found = {
        "data": [{"id": "31", "text": "你好", "author_id": "7"}],
        "includes": {"users": [ANA]},
        "meta": {},
    }
    posts.vendor.files["/2/users/7/timelines/reverse_chronological"] = json.dumps(found).encode()
    assert syncs.run(connected(connect, "timeline")).inserted == 1
    assert posts.vendor.fetched[0][1] == {"authorization": "Bearer x-secret"}


def test_check_and_refused_credentials(posts: Posts, connect: Connect, syncs: Syncs) -> None:
    connector = make_connector(XConnector, credentials=TOKEN)
    assert connector.check() == "@ana"
    posts.vendor.refuse_next(401)
    with pytest.raises(CredentialsError):
        make_connector(XConnector, credentials=TOKEN).check()
    posts.vendor.on("GET /2/users/me", {"errors": []})
    with pytest.raises(RejectedError):
        make_connector(XConnector, credentials=TOKEN).check()
    posts.vendor.refuse_next(401)
    assert syncs.run(connected(connect, "posts")).error_code == "remote_credentials"
