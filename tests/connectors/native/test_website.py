"""Websites on loopback."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from accounts.tenancy import tenant_scope
from config.embedded.paths import DataFolder
from config.errors import AppError, CredentialsError, InvalidInputError, RejectedError
from connectors.models import Connection, SyncRun
from connectors.native.website.addresses import one_spelling
from connectors.native.website.crawl import Crawl
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.site import Reply, Site, page, running_site

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]
Crawling = Callable[..., Connection]
FULL, RETRY = SyncRun.Kind.FULL, SyncRun.Kind.RETRY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture
def site(settings: Any, tmp_path: Path, monkeypatch: Any) -> Iterator[Site]:
    """Three pages."""
    settings.GROUNDWORK_DATA = DataFolder(tmp_path / "data")
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr("config.http._FIRST_WAIT_S", 0.001)
    with running_site() as running:
        running.pages["/"] = page("/herons", quote("/水鸟/苍鹭"), title="Birds")
        running.pages["/herons"] = page("/", title="Herons")
        running.pages[quote("/水鸟/苍鹭")] = page(title="苍鹭", text="苍鹭涉水。")
        yield running


@pytest.fixture
def crawling(connect: Connect, site: Site) -> Crawling:
    numbers = count()

    def make(**config: Any) -> Connection:
        values = {"start_urls": [f"{site.url}/"], "requests_per_second": 100, **config}
        return connect("website", name=str(next(numbers)), config=values)

    return make


def paths(syncs: Syncs, site: Site) -> set[str]:
    return {name.removeprefix(site.url) for name in syncs.documents()}


def test_pages_become_documents_with_their_facts(
    syncs: Syncs, site: Site, crawling: Crawling, keeper: Any
) -> None:
    site.pages["/herons"] = page(title="Herons", Last_Modified="Sat, 01 Mar 2025 08:00:00 GMT")
    run = syncs.run(crawling())
    assert (run.status, counts(run)) == ("succeeded", (3, 0, 0, 0, 0))
    assert paths(syncs, site) == {"/", "/herons", quote("/水鸟/苍鹭")}
    documents = {one.title: one for one in syncs.documents().values()}
    assert documents["苍鹭"].status == "ready"
    assert documents["苍鹭"].breadcrumbs == [site.url.removeprefix("http://"), "水鸟"]
    assert documents["Herons"].source_updated_at == datetime(2025, 3, 1, 8, tzinfo=UTC)
    assert documents["Herons"].source_uri == f"{site.url}/herons"
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="苍鹭涉水").exists()


def test_unchanged_pages_are_not_sent_again(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    connection = crawling()
    syncs.run(connection)
    site.forget()
    run = syncs.run(connection)
    assert counts(run) == (0, 0, 3, 0, 0)
    conditions = [one.get("If-None-Match") for one in site.headers if one.get("If-None-Match")]
    assert len(conditions) == 3
    assert syncs.fresh(connection).cursor == {}
    site.pages["/herons"] = page("/", "/storks", title="Herons and storks")
    site.pages["/storks"] = page(title="Storks")
    run = syncs.run(connection)
    assert counts(run) == (1, 1, 2, 0, 0)


def test_a_token_in_a_page_is_no_change(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.is_tagged = False
    connection = crawling()
    site.pages["/herons"] = page(title="Herons", head="<script>let token = 1;</script>")
    syncs.run(connection)
    site.pages["/herons"] = page(title="Herons", head="<script>let token = 2;</script>")
    assert counts(syncs.run(connection)) == (0, 0, 3, 0, 0)


@pytest.mark.parametrize("status", [404, 410])
def test_pages_that_are_gone_go(syncs: Syncs, site: Site, crawling: Crawling, status: int) -> None:
    connection = crawling()
    syncs.run(connection)
    site.pages["/herons"] = Reply(b"", status)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (0, 0, 2, 1, 0))
    assert paths(syncs, site) == {"/", quote("/水鸟/苍鹭")}


@pytest.mark.parametrize("status", [500, 503, 403])
def test_a_page_that_fails_is_kept_and_nothing_counts_as_deleted(
    syncs: Syncs, site: Site, crawling: Crawling, status: int
) -> None:
    site.pages["/herons"] = page("/only-from-here", title="Herons")
    site.pages["/only-from-here"] = page(title="Deep")
    connection = crawling()
    syncs.run(connection)
    site.pages["/herons"] = Reply(b"", status)
    site.pages["/"] = page("/herons", title="Birds")  # the other is no longer linked to
    run = syncs.run(connection)
    assert (run.status, run.deleted, run.failed) == ("partial", 0, 1)
    assert len(syncs.documents()) == 4
    site.pages["/herons"] = page("/only-from-here", title="Herons")
    run = syncs.run(connection, kind=RETRY)
    assert (run.status, run.failed) == ("succeeded", 0)
    run = syncs.run(connection)
    assert run.deleted == 1


@pytest.mark.parametrize("broken", ["all", "start", "robots", "moved", "gone"])
def test_a_site_that_is_down_deletes_nothing(
    syncs: Syncs, site: Site, crawling: Crawling, broken: str
) -> None:
    connection = crawling()
    syncs.run(connection)
    down = Reply(b"", 503)
    if broken == "all":
        site.pages = dict.fromkeys(site.pages, down)
        site.otherwise = lambda _path: down
    elif broken == "robots":
        site.pages["/robots.txt"] = down
    elif broken == "moved":
        moved = Reply(b"", 302, {"Location": "https://sign-in.example/"})
        site.pages = dict.fromkeys(site.pages, moved)
    else:
        site.pages["/"] = down if broken == "start" else Reply(b"", 404)
    run = syncs.run(connection, kind=FULL)
    assert run.status in {"queued", "failed", "partial"}
    assert run.deleted == 0
    assert len(syncs.documents()) == 3


def test_an_interrupted_crawl_goes_on_where_it_was(
    syncs: Syncs, site: Site, crawling: Crawling, monkeypatch: Any
) -> None:
    site.is_tagged = False
    for number in range(6):
        site.pages[f"/{number}"] = page(f"/{number + 1}", title=f"Number {number}")
    site.pages["/"] = page("/0", title="Birds")
    site.pages["/6"] = page(title="Number 6")
    monkeypatch.setattr("connectors.native.website.crawl._PAGE", 2)
    look = Crawl.look

    def broken(self: Crawl, url: str) -> Any:
        if url.endswith("/3"):
            raise RejectedError("Broken off.")
        return look(self, url)

    monkeypatch.setattr(Crawl, "look", broken)
    connection = crawling()
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("failed", 4)
    assert syncs.fresh(connection).cursor["crawl"]
    monkeypatch.setattr(Crawl, "look", look)
    site.forget()
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (4, 0, 4, 0, 0)), "nothing was swept"
    assert sorted(site.forget()) == ["/3", "/4", "/5", "/6"]


def test_without_the_memory_everything_is_asked_for_anew(
    syncs: Syncs, site: Site, crawling: Crawling, tmp_path: Path
) -> None:
    connection = crawling()
    syncs.run(connection)
    for path in (tmp_path / "data" / "sources").rglob("pages.sqlite3*"):
        path.write_bytes(b"not a database") if path.suffix == ".sqlite3" else path.unlink()
    assert counts(syncs.run(connection)) == (0, 0, 3, 0, 0)


def test_robots_txt_is_followed(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.pages["/robots.txt"] = Reply(
        b"User-agent: *\nDisallow: /herons\n\nUser-agent: x\nDisallow: /"
    )
    syncs.run(crawling())
    assert paths(syncs, site) == {"/", quote("/水鸟/苍鹭")}
    assert "/herons" not in site.forget()
    site.pages["/robots.txt"] = Reply(b"User-agent: groundwork\nDisallow: /")
    run = syncs.run(crawling())
    assert run.status == "failed"
    assert site.forget() == []


def test_crawl_delay_and_rate_are_kept(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.pages["/robots.txt"] = Reply(b"User-agent: *\nCrawl-delay: 0.4")
    began = time.monotonic()
    list(open_connector(crawling()).pull({}))
    assert time.monotonic() - began > 0.8
    site.pages["/robots.txt"] = Reply(b"")
    began = time.monotonic()
    list(open_connector(crawling(requests_per_second=4)).pull({}))
    assert time.monotonic() - began > 0.5


def test_robots_tags_are_followed(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.pages["/"] = page("/noindex", "/nofollow", "/header", "/link", title="Birds")
    site.pages["/noindex"] = page("/a", head='<meta name="robots" content="NOINDEX">')
    site.pages["/nofollow"] = page("/b", title="N", head='<meta name="robots" content="nofollow">')
    site.pages["/header"] = page("/c", title="H", X_Robots_Tag="none")
    site.pages["/link"] = Reply(b'<html><a href="/d" rel="external nofollow">x</a>A link', 200,
                                {"Content-Type": "text/html"})  # fmt: skip
    site.pages.update({f"/{name}": page(title=name) for name in "abcd"})
    syncs.run(crawling())
    assert paths(syncs, site) == {"/", "/nofollow", "/link", "/a"}


def test_addresses_of_one_page_are_one_document(
    syncs: Syncs, site: Site, crawling: Crawling
) -> None:
    site.pages["/"] = page(
        "/herons?utm_source=x", "/herons#top", "herons", "/herons?fbclid=9", "//127.0.0.2/x", "mailto:a@b.c",
        "javascript:void(0)", "/variant?sort=1", "http://", "https://[::1", "/水鸟/苍鹭", title="Birds",
    )  # fmt: skip
    site.pages["/variant?sort=1"] = page(title="V", head='<link rel="canonical" href="/variant">')
    site.pages["/variant"] = page(title="V", head='<link rel="canonical" href="/variant/">')
    syncs.run(crawling())
    assert paths(syncs, site) == {"/", "/herons", "/variant", quote("/水鸟/苍鹭")}
    asked = site.forget()
    assert len(asked) == len(set(asked)) == 5


def test_redirects_stay_on_the_site(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    with running_site() as other:
        other.pages["/secret"] = page(title="Elsewhere")
        site.pages["/"] = page("/old", "/out", "/loop", "/refresh", title="Birds")
        site.pages["/old"] = Reply(b"", 301, {"Location": "/herons"})
        site.pages["/out"] = Reply(b"", 302, {"Location": f"{other.url}/secret"})
        site.pages["/loop"] = Reply(b"", 302, {"Location": "/loop"})
        site.pages["/refresh"] = page(
            title="R", head='<meta http-equiv="refresh" content="0; url=/target">'
        )
        site.pages["/target"] = page(title="Target")
        run = syncs.run(crawling())
        assert run.status == "succeeded"
        assert other.asked == []
    assert paths(syncs, site) == {"/", "/herons", "/refresh", "/target"}


def test_sitemaps_name_pages(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    names = [f"/n{number}" for number in range(3)]
    site.pages.update({name: page(title=name) for name in names})
    site.pages["/robots.txt"] = Reply(f"Sitemap: {site.url}/index.xml".encode())
    space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    site.pages["/index.xml"] = Reply(
        f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><sitemapindex {space}>'
        f"<sitemap><loc>{site.url}/a.xml.gz</loc></sitemap><sitemap><loc>{site.url}/b.txt</loc></sitemap>"
        f"<sitemap><loc>{site.url}/gone.xml</loc></sitemap><sitemap><loc>{site.url}/index.xml</loc></sitemap>"
        "</sitemapindex>".encode()
    )  # fmt: skip
    site.pages["/a.xml.gz"] = Reply(
        gzip.compress(f"<urlset {space}><url><loc> {site.url}/n0 </loc></url><url><loc>https://other.example/"
                      "</loc></url><url><loc>&e;</loc></url></urlset>".encode())
    )  # fmt: skip
    site.pages["/b.txt"] = Reply(f"{site.url}/n1\n{site.url}/n2\n".encode())
    run = syncs.run(crawling())
    assert run.status == "succeeded"
    assert set(names) < paths(syncs, site)
    site.pages["/b.txt"] = Reply(b"", 500)
    connection = crawling(use_sitemaps=False)
    syncs.run(connection)
    assert not set(names) & set(site.forget()[-3:])


def test_a_sitemap_that_fails_is_told_and_nothing_goes(
    syncs: Syncs, site: Site, crawling: Crawling
) -> None:
    connection = crawling()
    syncs.run(connection)
    site.pages["/sitemap.xml"] = Reply(b"", 500)
    site.pages["/"] = page(title="Birds")
    run = syncs.run(connection)
    assert (run.status, run.deleted) == ("partial", 0)
    assert "sitemap" in run.warnings[0]


def test_limits_bound_the_crawl(
    syncs: Syncs, site: Site, crawling: Crawling, monkeypatch: Any
) -> None:
    site.otherwise = lambda path: (
        page(f"{path}x", f"{path}y", title=path) if path.startswith("/n") else Reply(b"", 404)
    )
    site.pages["/"] = page("/n", title="Birds")
    connection = crawling(max_pages=9)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("partial", 9)
    site.pages["/nx"] = Reply(b"", 410)
    run = syncs.run(connection)
    assert run.deleted == 1, "what the site says is gone goes even so"
    site.forget()
    list(open_connector(crawling(max_depth=2)).pull({}))
    assert sorted(site.forget()) == ["/", "/n", "/nx", "/ny"]


def test_endless_calendars_and_circles_end(
    syncs: Syncs, site: Site, crawling: Crawling, monkeypatch: Any
) -> None:
    monkeypatch.setattr("connectors.native.website.crawl._MOST_OF_A_SHAPE", 5)

    def endless(path: str) -> Reply:
        if path.startswith("/calendar/"):
            number = int(path.removeprefix("/calendar/"))
            return page(f"/calendar/{number + 1}", title=f"Day {number}")
        if path.startswith("/circle/"):
            return page(f"{path}circle/", title=path)
        return Reply(b"", 404)

    site.otherwise = endless
    site.pages["/"] = page("/calendar/1", "/circle/", title="Birds")
    connection = crawling(max_depth=100)
    run = syncs.run(connection)
    assert len(site.forget()) < 12
    assert "differ by numbers" in run.warnings[0]


def test_parts_of_a_site_can_be_chosen(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.pages["/"] = page("/docs/a", "/docs/old/b", "/blog/c", title="Birds")
    site.pages["/docs/a"] = page("/blog/d", title="A")
    site.pages.update({name: page(title=name) for name in ("/docs/old/b", "/blog/c", "/blog/d")})
    syncs.run(crawling(path_prefixes=["/docs/"], exclude=["*/old/*"]))
    assert paths(syncs, site) == {"/", "/docs/a"}
    assert set(site.forget()) == {"/", "/docs/a"}
    syncs.run(crawling(include=["/blog/*"]))
    assert paths(syncs, site) >= {"/blog/c", "/blog/d"}


def test_files_are_read_too(syncs: Syncs, site: Site, crawling: Crawling) -> None:
    site.pages["/"] = page("/报告.txt", "/style.css", "/photo.png", "/data", title="Birds")
    site.pages[quote("/报告.txt")] = Reply(
        "鹤跳舞。".encode(), headers={"Content-Type": "text/plain"}
    )
    site.pages["/data"] = Reply(b"GIF89a", headers={"Content-Type": "image/gif"})
    run = syncs.run(crawling())
    assert run.status == "succeeded"
    assert paths(syncs, site) == {"/", quote("/报告.txt")}
    assert not {"/style.css", "/photo.png"} & set(site.forget())


@pytest.mark.parametrize("place", ["header", "page"])
def test_charsets_named_anywhere_are_read(
    syncs: Syncs, site: Site, crawling: Crawling, keeper: Any, place: str
) -> None:
    head = "" if place == "header" else '<meta charset="gb2312">'
    kind = "text/html" + ("; charset=GBK" if place == "header" else "")
    body = f"<html><head>{head}<title>苍鹭</title></head><body>苍鹭涉水</body></html>".encode("gbk")
    site.pages["/"] = Reply(body, headers={"Content-Type": kind})
    syncs.run(crawling())
    assert syncs.documents()[f"{site.url}/"].title == "苍鹭"
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="苍鹭涉水").exists()


def test_content_that_was_not_stored_is_fetched_later(
    syncs: Syncs, site: Site, crawling: Crawling, keeper: Any
) -> None:
    connection = crawling()
    syncs.run(connection)
    with tenant_scope(keeper.tenant_id):
        connection.items.filter(external_id=f"{site.url}/herons").update(
            version="", status="failed"
        )
    run = syncs.run(connection)
    assert (run.status, run.kept) == ("succeeded", 3)
    assert site.asked.count("/herons") == 3


def test_the_check_tells_what_is_there(site: Site, crawling: Crawling, connect: Connect) -> None:
    assert open_connector(crawling()).check() == f"Birds: {site.url}/"
    with running_site() as other:
        site.pages["/"] = Reply(b"", 301, {"Location": other.url})
        other.pages["/"] = page(title="Other")
        with pytest.raises(InvalidInputError, match=other.url):
            open_connector(crawling()).check()
    site.pages["/"] = Reply(b"", 404)
    with pytest.raises(RejectedError):
        open_connector(crawling()).check()
    site.pages["/"] = Reply(b"", 401)
    with pytest.raises(CredentialsError):
        open_connector(crawling()).check()
    site.pages["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /")
    with pytest.raises(RejectedError, match=r"robots\.txt"):
        open_connector(crawling()).check()


@pytest.mark.parametrize(
    "url", ["", "birds", "ftp://a.example/", "file:///etc/passwd", "http://u:p@a.example/"]
)
def test_addresses_that_are_none(crawling: Crawling, url: str) -> None:
    connection = crawling(start_urls=[url])
    with pytest.raises(InvalidInputError):
        open_connector(connection).check()
    with pytest.raises(InvalidInputError):
        list(open_connector(connection).pull({}))


def test_private_networks_are_closed(crawling: Crawling, site: Site, settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = []
    for step in (lambda c: c.check(), lambda c: list(c.pull({}))):
        with pytest.raises(AppError, match="private network"):
            step(open_connector(crawling()))
    assert site.asked == []


def test_a_site_behind_a_password(connect: Connect, syncs: Syncs, site: Site) -> None:
    config = {"start_urls": [f"{site.url}/"], "requests_per_second": 100}
    syncs.run(connect("website", config=config, auth_method="basic",
                      credentials={"username": "安娜", "password": "geheim"}))  # fmt: skip
    assert all(one["Authorization"].startswith("Basic ") for one in site.headers)


@pytest.mark.parametrize(
    ("url", "spelling"),
    [
        ("HTTP://Example.COM:80/a?utm_source=x&b=1#c", "http://example.com/a?b=1"),
        ("https://例子.example/路", "https://xn--fsqu00a.example/%E8%B7%AF"),
        ("https://a.example", "https://a.example/"),
        ("https://a.example/%7Eb/%e4%bd%a0", "https://a.example/~b/%E4%BD%A0"),
        ("https://a.example/x;jsessionid=9?q=a+b", "https://a.example/x?q=a+b"),
        ("https://a.example/a/b/a/b/a/b", ""),
        ("https://a.example/" + "x" * 1100, ""),
        ("https://a.example:99999/", ""),
        ("tel:+1", ""),
    ],
)
def test_one_spelling_for_each_address(url: str, spelling: str) -> None:
    assert one_spelling(url) == spelling
