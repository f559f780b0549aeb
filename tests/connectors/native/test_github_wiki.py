"""Wikis of GitHub, served by git itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.embedded.paths import DataFolder
from connectors.base import Checkpoint, Complete, Deletion, Event, Notice, Record
from connectors.models import Connection
from connectors.native.github.connector import GithubConnector
from tests.connectors.conftest import Syncs
from tests.connectors.manifest.site import Site, ids, only, served
from tests.connectors.native.git_server import TOKEN, GitServer, Repository, git_server
from tests.connectors.vendor import HOST, make_connector

pytestmark = pytest.mark.allow_hosts([HOST])
ONLY = {
    "code": "none", "issues": False, "pull_requests": False, "releases": False, "discussions": False,
    "wiki": True,
}  # fmt: skip


@pytest.fixture
def server(settings: Any, monkeypatch: Any, tmp_path: Path) -> Iterator[GitServer]:
    settings.GROUNDWORK_PRIVATE_HOSTS = [HOST]
    settings.GROUNDWORK_DATA = DataFolder(tmp_path / "data")
    monkeypatch.setattr("connectors.services.opening.admission", lambda *_: lambda: None)
    (tmp_path / "git").mkdir()
    with git_server(tmp_path / "git") as running:
        yield running


@pytest.fixture
def pages(server: GitServer, tmp_path: Path) -> Repository:
    """A wiki of three pages, with what surrounds them."""
    made = Repository(tmp_path / "git" / "acme" / "app.wiki.git")
    made.write("Home.md", "# Welcome")
    made.write("苍鹭-观察.md", "# 苍鹭\n\n苍鹭涉水。")
    made.write("guides/Getting-started.rst", "Start")
    made.write("_Sidebar.md", "* Home")
    made.write("heron.png", b"\x89PNG\0")
    made.commit()
    return made


def about(name: str, server: GitServer) -> dict[str, Any]:
    """What GitHub says of a repository."""
    address = f"{server.url}/acme/{name}"
    return {"full_name": f"acme/{name}", "private": True, "has_wiki": True, "html_url": address}


@pytest.fixture
def site(server: GitServer) -> Iterator[Site]:
    found = Site()
    for name in ("app", "lib"):
        found.routes[f"/repos/acme/{name}/collaborators"] = []
        found.routes[f"/repos/acme/{name}"] = about(name, server)
    with served(found) as found.url:
        yield found


def made(site: Site, tmp_path: Path, *names: str, token: str = TOKEN) -> GithubConnector:
    """A connector that reads nothing but wikis."""
    config = {"repositories": names or ["acme/app"], "api_url": site.url, **ONLY}
    connector = make_connector(GithubConnector, config, {"token": token})
    connector.context = replace(connector.context, cache=tmp_path / "cache")
    return connector


def end(events: list[Event]) -> Any:
    """The last position."""
    return only(events, Checkpoint)[-1].cursor


def test_pages_of_a_wiki_are_read(
    site: Site, pages: Repository, server: GitServer, tmp_path: Path
) -> None:
    events = list(made(site, tmp_path).pull({}))
    found = {one.external_id: one for one in only(events, Record)}
    assert set(found) == {
        "acme/app/wiki/Home.md", "acme/app/wiki/guides/Getting-started.rst", "acme/app/wiki/苍鹭-观察.md",
    }  # fmt: skip
    heron = found["acme/app/wiki/苍鹭-观察.md"]
    assert (heron.title, heron.scope, heron.author) == ("苍鹭 观察", "acme/app:wiki", "安娜")
    assert heron.url == f"{server.url}/acme/app/wiki/%E8%8B%8D%E9%B9%AD-%E8%A7%82%E5%AF%9F"
    assert heron.principals == frozenset({"group:acme/app"})
    assert found["acme/app/wiki/Home.md"].url == f"{server.url}/acme/app/wiki"
    guide = found["acme/app/wiki/guides/Getting-started.rst"]
    assert (guide.title, guide.breadcrumbs) == ("Getting started", ("acme/app", "Wiki", "guides"))
    assert only(events, Complete) == [Complete("acme/app:wiki")]


def test_a_later_run_reads_what_differs(site: Site, pages: Repository, tmp_path: Path) -> None:
    connector = made(site, tmp_path)
    cursor = end(list(connector.pull({})))
    events = list(connector.pull(cursor))
    assert (ids(events), only(events, Complete)) == ([], [])
    pages.write("Home.md", "# Welcome back")
    pages.git("rm", "--quiet", "苍鹭-观察.md")
    pages.commit()
    events = list(connector.pull(cursor))
    assert ids(events) == ["acme/app/wiki/Home.md"]
    assert only(events, Deletion) == [Deletion("acme/app/wiki/苍鹭-观察.md")]
    assert end(events) != cursor


def test_a_wiki_that_nobody_has_written_gives_nothing(
    site: Site, server: GitServer, tmp_path: Path
) -> None:
    Repository(tmp_path / "git" / "acme" / "lib.wiki.git")  # without a commit; app has none at all
    events = list(made(site, tmp_path, "acme/app", "acme/lib").pull({}))
    assert [type(one) for one in events] == [Checkpoint]
    site.routes["/repos/acme/app"] = {**about("app", server), "has_wiki": False}
    server.asked.clear()
    events = list(made(site, tmp_path).pull({}))
    assert only(events, Complete) == [Complete("acme/app:wiki")]
    assert server.asked == []


def test_what_one_wiki_refuses_loses_no_other(
    site: Site, pages: Repository, server: GitServer, tmp_path: Path
) -> None:
    events = list(made(site, tmp_path, token="wrong").pull({}))
    assert [one.message for one in only(events, Notice)] == [
        "acme/app could not be read completely. The wiki: The repository does not accept the credentials."
    ]
    server.status = 503
    events = list(made(site, tmp_path).pull({}))
    assert len(only(events, Notice)) == 1
    assert only(events, Complete) == []


def test_single_pages_are_read_anew(site: Site, pages: Repository, tmp_path: Path) -> None:
    asked = ["acme/app/wiki/Home.md", "acme/app/wiki/Gone.md"]
    found, gone = made(site, tmp_path).fetch(asked)
    assert isinstance(found, Record)
    assert gone == Deletion("acme/app/wiki/Gone.md")


def test_a_repository_that_leaves_takes_its_wiki_along(
    site: Site, pages: Repository, tmp_path: Path
) -> None:
    cursor = end(list(made(site, tmp_path).pull({})))
    (kept,) = (tmp_path / "cache").iterdir()
    events = list(made(site, tmp_path, "acme/lib").pull(cursor))
    assert Complete("acme/app:wiki") in events
    assert not kept.exists()


def test_a_run_stores_updates_and_deletes(
    site: Site, pages: Repository, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    connection = connect(
        "github",
        config={"repositories": ["acme/app"], "api_url": site.url, **ONLY},
        auth_method="token",
        credentials={"token": TOKEN},
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 3, "")
    pages.write("Home.md", "# 欢迎")
    pages.git("rm", "--quiet", "guides/Getting-started.rst")
    pages.commit()
    run = syncs.run(connection)
    assert (run.status, run.updated, run.deleted) == ("succeeded", 1, 1)
    assert {one.status for one in syncs.documents().values()} == {"ready"}
