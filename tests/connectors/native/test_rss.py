"""Feeds on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accounts.tenancy import tenant_scope
from config.errors import AppError, CredentialsError, InvalidInputError, RejectedError
from connectors.base import Checkpoint
from connectors.models import Connection, SyncRun
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.site import Reply, Site, page, running_site

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]
FULL, RETRY = SyncRun.Kind.FULL, SyncRun.Kind.RETRY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


def atom(*entries: str, title: str = "鸟类 news") -> Reply:
    body = f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>{"".join(entries)}</feed>'
    return Reply(body.encode(), headers={"Content-Type": "application/atom+xml"})


def entry(
    name: str, text: str = "", *, updated: str = "2025-03-01T08:00:00+08:00", link: str = ""
) -> str:
    return (
        f"<entry><id>urn:{name}</id><title>{name}</title><link href='{link or f'/{name}'}'/>"
        f"<author><name>安娜</name></author><category term='bird'/><published>2025-01-01T00:00:00Z</published>"
        f"<updated>{updated}</updated><content type='html'>&lt;p&gt;{text or f'About {name}.'}&lt;/p&gt;"
        "&lt;script&gt;alert()&lt;/script&gt;</content></entry>"
    )


RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>Storks</title>
<item><title>One</title><link>https://example.com/1</link><description>First &lt;b&gt;bold&lt;/b&gt;</description>
<pubDate>Sat, 01 Mar 2025 08:00:00 GMT</pubDate><enclosure url="https://example.com/1.mp3" type="audio/mpeg" length="1"/></item>
<item><description>No title, no link</description></item></channel></rss>"""  # fmt: skip


@pytest.fixture
def site(settings: Any, monkeypatch: Any) -> Iterator[Site]:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr("config.http._FIRST_WAIT_S", 0.001)
    with running_site() as running:
        running.pages["/a"] = atom(entry("heron"), entry("苍鹭", "苍鹭涉水。"))
        running.pages["/b"] = Reply(RSS, headers={"Content-Type": "text/xml"})
        yield running


@pytest.fixture
def following(connect: Connect, site: Site) -> Callable[..., Connection]:
    def make(*feeds: str, **config: Any) -> Connection:
        urls = [f"{site.url}{feed}" for feed in feeds or ("/a", "/b")]
        return connect("rss", config={"feeds": urls, **config})

    return make


Following = Callable[..., Connection]


def test_entries_become_documents_with_their_facts(
    syncs: Syncs, site: Site, following: Following, keeper: Any
) -> None:
    run = syncs.run(following())
    assert (run.status, counts(run)) == ("succeeded", (4, 0, 0, 0, 0))
    documents = syncs.documents()
    heron = documents[f"{site.url}/a urn:苍鹭"]
    assert (heron.status, heron.title, heron.author) == ("ready", "苍鹭", "安娜")
    assert heron.breadcrumbs == ["鸟类 news"]
    assert heron.source_uri == f"{site.url}/苍鹭"
    assert heron.source_created_at is not None
    assert heron.source_updated_at is not None
    assert heron.source_updated_at.isoformat() == "2025-03-01T00:00:00+00:00"
    assert heron.metadata["tags"] == ["bird"]
    stork = documents[f"{site.url}/b https://example.com/1"]
    assert stork.metadata["enclosures"] == ["https://example.com/1.mp3"]
    with tenant_scope(keeper.tenant_id):
        contents = " ".join(Chunk.objects.values_list("content", flat=True))
    assert "苍鹭涉水" in contents
    assert "No title, no link" in contents
    assert "alert" not in contents


def test_unchanged_feeds_are_not_sent_again(syncs: Syncs, site: Site, following: Following) -> None:
    connection = following()
    syncs.run(connection)
    run = syncs.run(connection)
    assert counts(run) == (0, 0, 0, 0, 0)
    assert all("If-None-Match" in headers for headers in site.headers[2:])
    assert counts(syncs.run(connection, kind=FULL)) == (0, 0, 4, 0, 0)


def test_updated_entries_are_new_versions_and_what_leaves_the_feed_stays(
    syncs: Syncs, site: Site, following: Following
) -> None:
    connection = following("/a")
    syncs.run(connection)
    site.pages["/a"] = atom(
        entry("crane"), entry("heron", "Herons nest.", updated="2025-04-01T00:00:00Z")
    )
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (1, 1, 0, 0, 0))
    assert len(syncs.documents()) == 3


@pytest.mark.parametrize(
    "bad",
    [Reply(b"", 404), Reply(b"", 500), Reply(b"<html>No feed</html>"), Reply(b""), Reply(b"{}"),
     Reply(b'{"version": 3}'), Reply(b"\x00\xff\xfe")],
)  # fmt: skip
def test_one_bad_feed_does_not_keep_back_the_others(
    syncs: Syncs, site: Site, following: Following, bad: Reply
) -> None:
    connection = following("/a", "/bad", "/b")
    site.pages["/bad"] = bad
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("partial", 4)
    assert f"{site.url}/bad" in run.warnings[0]
    site.pages["/bad"] = atom(entry("late"))
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 1)


def test_feeds_that_are_all_down_fail_the_run_and_delete_nothing(
    syncs: Syncs, site: Site, following: Following
) -> None:
    connection = following()
    syncs.run(connection)
    site.pages = {name: Reply(b"", 404) for name in site.pages}
    run = syncs.run(connection, kind=FULL)
    assert (run.status, run.error_code) == ("failed", "remote_rejected")
    assert len(syncs.documents()) == 4
    site.pages = {name: Reply(b"", 429, {"Retry-After": "120"}) for name in site.pages}
    assert syncs.run(connection).status == "queued"


def test_malformed_feeds_give_what_they_have(
    syncs: Syncs, site: Site, following: Following
) -> None:
    whole = site.pages["/a"].body
    site.pages["/a"] = Reply(whole[: whole.index(b"</feed>") - 60])
    connection = following("/a")
    run = syncs.run(connection)
    assert run.status == "succeeded"
    assert f"{site.url}/a urn:heron" in syncs.documents()
    assert syncs.fresh(connection).cursor == {"feeds": {f"{site.url}/a": {}}}, (
        "it is asked for whole"
    )


def test_json_feeds_are_read(syncs: Syncs, site: Site, following: Following) -> None:
    items = [
        {"id": 1, "title": "苍鹭", "url": "/1", "content_html": "<p>苍鹭涉水</p>", "tags": ["a"],
         "date_published": "2025-03-01T08:00:00+08:00", "authors": [{"name": "Ana"}, {"name": "Bo"}],
         "attachments": [{"url": "https://example.com/1.mp3"}]},
        {"id": "2", "content_text": "Plain <text>.", "date_published": "2025-99-99T00:00:00Z"},
        "no item",
    ]  # fmt: skip
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "Birds", "items": items}
    site.pages["/j"] = Reply(json.dumps(feed).encode())
    run = syncs.run(following("/j"))
    assert (run.status, run.inserted) == ("succeeded", 2)
    heron = syncs.documents()[f"{site.url}/j 1"]
    assert (heron.title, heron.author, heron.source_uri) == ("苍鹭", "Ana, Bo", f"{site.url}/1")


def test_whole_pages_are_read_where_wanted(
    syncs: Syncs, site: Site, following: Following, keeper: Any
) -> None:
    site.pages["/heron"] = page(title="Heron", text="The whole story.")
    connection = following("/a", full_pages=True)
    site.pages["/a"] = atom(entry("heron"), entry("gone"))
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (1, 0, 0, 0, 1))
    assert syncs.items()[f"{site.url}/a urn:gone"].stage == "fetch"
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="The whole story.").exists()
    site.pages["/gone"] = page(title="Here again")
    run = syncs.run(connection, kind=RETRY)
    assert (run.status, run.inserted) == ("succeeded", 1)
    site.asked.clear()
    run = syncs.run(connection, kind=FULL)
    assert counts(run) == (0, 0, 2, 0, 0)
    assert site.asked == ["/a"]
    site.pages["/heron"] = page(title="Heron", text="Another story.")
    site.pages["/a"] = atom(entry("heron", updated="2025-05-01T00:00:00Z"))
    assert counts(syncs.run(connection)) == (0, 1, 0, 0, 0)


def test_credentials_go_to_the_feeds_and_not_to_their_links(
    connect: Connect, syncs: Syncs, site: Site
) -> None:
    with running_site() as other:
        other.pages["/x"] = page(title="X")
        site.pages["/a"] = atom(entry("heron", link=f"{other.url}/x"))
        config = {"feeds": [f"{site.url}/a"], "full_pages": True}
        run = syncs.run(
            connect("rss", config=config, auth_method="token", credentials={"token": "t"})
        )
        assert run.inserted == 1
        assert site.headers[0]["Authorization"] == "Bearer t"
        assert "Authorization" not in other.headers[0]


def test_a_run_goes_on_from_a_checkpoint(site: Site, following: Following) -> None:
    connector = open_connector(following())
    positions = [one for one in connector.pull({}) if isinstance(one, Checkpoint)]
    assert list(positions[0].cursor["feeds"]) == [f"{site.url}/a"]
    rest = [getattr(one, "external_id", "") for one in connector.pull(positions[0].cursor)]
    assert len([name for name in rest if name]) == 2
    assert all(name.startswith(f"{site.url}/b ") for name in rest if name)


def test_the_check_names_the_feeds(site: Site, following: Following, connect: Connect) -> None:
    assert open_connector(following()).check() == "鸟类 news, Storks"
    site.pages["/b"] = page(title="No feed")
    with pytest.raises(RejectedError, match="no feed"):
        open_connector(connect("rss", name="B", config={"feeds": [f"{site.url}/b"]})).check()
    site.pages["/b"] = Reply(b"", 401)
    with pytest.raises(CredentialsError):
        open_connector(connect("rss", name="C", config={"feeds": [f"{site.url}/b"]})).check()


@pytest.mark.parametrize("url", ["birds", "file:///etc/passwd", "ftp://a.example/x"])
def test_addresses_that_are_none(connect: Connect, url: str) -> None:
    with pytest.raises(InvalidInputError):
        open_connector(connect("rss", config={"feeds": [url]})).check()


def test_private_networks_are_closed(site: Site, following: Following, settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = []
    with pytest.raises(AppError, match="private network"):
        open_connector(following()).check()
    assert site.asked == []
