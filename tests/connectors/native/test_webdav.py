"""Files of a WebDAV server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import (
    AppError,
    CredentialsError,
    InvalidInputError,
    RejectedError,
    TransientError,
)
from connectors.base import Record
from connectors.models import Connection, SyncRun
from connectors.native.webdav import WebdavConnector, _entries
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.webdav_server import (
    NAME,
    PASSWORD,
    TOKEN,
    WebdavServer,
    webdav_server,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]
RETRY = SyncRun.Kind.RETRY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture(scope="session")
def dav(tmp_path_factory: Any) -> Iterator[WebdavServer]:
    with webdav_server(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
def folder(dav: WebdavServer, settings: Any, monkeypatch: Any, request: Any) -> Path:
    """Two files, one of them in a folder."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr("config.http._backoff", lambda _: 0.0)
    dav.broken, dav.moved, dav.asked = {}, {}, []
    made: Path = dav.folder / request.node.name
    (made / "水 鸟#1").mkdir(parents=True)
    (made / "herons.md").write_text("# Herons\n\nHerons wade.\n")
    (made / "水 鸟#1" / "苍鹭 100%.txt").write_text("苍鹭涉水。")
    return made


@pytest.fixture
def reading(connect: Connect, dav: WebdavServer, folder: Path) -> Callable[..., Connection]:
    def make(password: str = PASSWORD, **config: Any) -> Connection:
        given = {"url": f"{dav.url}/{folder.name}/", **config}
        proof = {"username": NAME, "password": password}
        return connect(
            "webdav", name=uuid4().hex, config=given, auth_method="basic", credentials=proof
        )

    return make


def test_files_become_documents_with_their_facts(
    reading: Connect, syncs: Syncs, keeper: Actor
) -> None:
    run = syncs.run(reading())
    documents = syncs.documents()
    assert (run.status, counts(run)) == ("succeeded", (2, 0, 0, 0, 0))
    chinese = documents["水 鸟#1/苍鹭 100%.txt"]
    assert (chinese.title, chinese.breadcrumbs) == ("苍鹭 100%", ["水 鸟#1"])
    assert chinese.source_uri.endswith("/%E6%B0%B4%20%E9%B8%9F%231/%E8%8B%8D%E9%B9%AD%20100%25.txt")
    assert chinese.source_updated_at is not None
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="苍鹭涉水").exists()


def test_later_runs_read_what_has_changed(
    reading: Connect, syncs: Syncs, folder: Path, dav: WebdavServer
) -> None:
    connection = reading()
    syncs.run(connection)
    (folder / "herons.md").write_text("# Herons\n\nHerons stand about.\n")
    (folder / "storks.md").write_text("Storks.")
    (folder / "水 鸟#1" / "苍鹭 100%.txt").unlink()
    run = syncs.run(connection)
    assert counts(run) == (1, 1, 0, 1, 0)
    assert set(syncs.documents()) == {"herons.md", "storks.md"}
    dav.asked.clear()
    assert counts(syncs.run(connection)) == (0, 0, 2, 0, 0)
    assert {method for method, _ in dav.asked} == {"PROPFIND"}, "nothing is fetched twice"


def test_folders_and_patterns_choose(reading: Connect, syncs: Syncs, folder: Path) -> None:
    for name in ("a/1.md", "a/b/2.md", "a/b/3.tmp", "c/4.md", "a/old/5.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    syncs.run(reading(folders=["/a/", "a/b"], include=["*.md"], exclude=["a/old"]))
    assert set(syncs.documents()) == {"a/1.md", "a/b/2.md"}


@pytest.mark.parametrize("status", [403, 500])
def test_a_folder_that_cannot_be_listed_deletes_nothing(
    reading: Connect, syncs: Syncs, folder: Path, dav: WebdavServer, status: int
) -> None:
    connection = reading()
    syncs.run(connection)
    (folder / "herons.md").unlink()
    dav.broken = {f"/{folder.name}/水 鸟#1": status}
    run = syncs.run(connection)
    assert (run.status, run.deleted, run.failed) == ("partial", 0, 1)
    assert "Cannot be listed" in syncs.items()["水 鸟#1"].error
    assert len(syncs.documents()) == 2
    dav.broken = {}
    syncs.run(connection)
    assert set(syncs.documents()) == {"水 鸟#1/苍鹭 100%.txt"}
    assert set(syncs.items()) == {"水 鸟#1/苍鹭 100%.txt"}


def test_a_file_that_cannot_be_fetched_is_kept_and_tried_again(
    reading: Connect, syncs: Syncs, folder: Path, dav: WebdavServer
) -> None:
    connection = reading()
    syncs.run(connection)
    (folder / "herons.md").write_text("Herons stand about.")
    dav.broken = {f"/{folder.name}/herons.md": 403}
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (0, 0, 1, 0, 1))
    assert "does not allow this" in syncs.items()["herons.md"].error
    dav.broken = {}
    run = syncs.run(connection, kind=RETRY)
    assert counts(run) == (0, 1, 0, 0, 0)
    assert syncs.items()["herons.md"].status == "stored"


def test_a_server_that_is_down_deletes_nothing(
    reading: Connect, syncs: Syncs, folder: Path, dav: WebdavServer
) -> None:
    connection = reading()
    syncs.run(connection)
    dav.broken = {f"/{folder.name}": 503}
    assert syncs.run(connection).status == "queued", "it is tried again later"
    assert len(syncs.documents()) == 2


def test_a_run_that_broke_off_fetches_only_what_it_lacks(
    reading: Connect, syncs: Syncs, folder: Path, dav: WebdavServer, keeper: Actor
) -> None:
    connection = reading()
    for name in ("x", "y", "z"):
        (folder / name).mkdir()
        (folder / name / "1.md").write_text(name)
    dav.broken = {f"/{folder.name}/{name}": 500 for name in ("x", "y", "z")}
    run = syncs.run(connection)
    assert run.status == "queued", "three folders in a row end the run"
    assert set(syncs.documents()) == {"herons.md"}
    dav.broken = {}
    dav.asked.clear()
    with tenant_scope(keeper.tenant_id):
        SyncRun.objects.update(not_before=None)
    syncs.work()
    assert len(syncs.documents()) == 5
    fetched = [path for method, path in dav.asked if method == "GET"]
    later = ("x/1.md", "y/1.md", "z/1.md", "水 鸟#1/苍鹭 100%.txt")
    assert fetched == [f"/{folder.name}/{name}" for name in later]


def test_redirects_are_followed(reading: Connect, dav: WebdavServer, folder: Path) -> None:
    dav.moved = {"/old/": f"/{folder.name}/"}
    events = open_connector(reading(url=f"{dav.url}/old")).pull({})
    found = {event.external_id for event in events if isinstance(event, Record)}
    assert found == {"herons.md", "水 鸟#1/苍鹭 100%.txt"}


def test_nextcloud_has_its_own_paths(reading: Connect, dav: WebdavServer, folder: Path) -> None:
    place = folder / "remote.php" / "dav" / "files" / NAME
    place.mkdir(parents=True)
    (place / "notes.md").write_text("Notes.")
    connector = open_connector(reading(product="nextcloud", url=f"{dav.url}/{folder.name}"))
    found = [event.external_id for event in connector.pull({}) if isinstance(event, Record)]
    assert found == ["notes.md"]
    with_whole = f"{dav.url}/{folder.name}/remote.php/dav/files/{NAME}/"
    connector = open_connector(reading(product="nextcloud", url=with_whole))
    assert isinstance(connector, WebdavConnector)
    assert connector.check() == "127.0.0.1: 1 entries"


def test_a_token_opens_it_too(connect: Connect, dav: WebdavServer, folder: Path) -> None:
    config = {"url": f"{dav.url}/{folder.name}"}
    proof = {"token": TOKEN}
    connection = connect("webdav", config=config, auth_method="token", credentials=proof)
    assert open_connector(connection).check() == "127.0.0.1: 2 entries"
    config["product"] = "owncloud"
    connection = connect(
        "webdav", name="Cloud", config=config, auth_method="token", credentials=proof
    )
    with pytest.raises(InvalidInputError, match="whole address"):
        open_connector(connection).check()


def test_places_can_be_chosen(reading: Connect) -> None:
    connector = open_connector(reading())
    assert isinstance(connector, WebdavConnector)
    assert [node.id for node in connector.browse("")] == ["水 鸟#1"]
    assert connector.browse("水 鸟#1") == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"password": "wrong-9"}, CredentialsError, "does not accept the credentials"),
        ({"folders": ["nowhere"]}, RejectedError, "does not have this"),
        ({"url": "http://127.0.0.1:9/"}, TransientError, "cannot be reached"),
        ({"url": "http://10.1.2.3/"}, RejectedError, "private network"),
    ],
)
def test_check_says_what_to_mend(
    reading: Connect, change: dict[str, Any], error: type[AppError], message: str
) -> None:
    connector = open_connector(reading(**change))
    with pytest.raises(error, match=message) as raised:
        connector.check()
    assert "wrong-9" not in str(raised.value)


def test_a_page_that_is_no_webdav_is_told_apart(
    reading: Connect, dav: WebdavServer, folder: Path
) -> None:
    for status in (200, 405):
        dav.broken = {f"/{folder.name}": status}
        with pytest.raises(RejectedError, match="no WebDAV"):
            open_connector(reading()).check()


def test_listings_are_read_wherever_a_proxy_has_moved_them() -> None:
    def listing(*hrefs: str) -> bytes:
        body = "".join(f"<d:response><d:href>{href}</d:href></d:response>" for href in hrefs)
        return f'<d:multistatus xmlns:d="DAV:">{body}</d:multistatus>'.encode()

    found = _entries(listing("https://x.example/inner/a/", "/inner/a/b%20c", "/inner/a/../d"), "q")
    assert [one.path for one in found] == ["q", "q/b c"]
    with pytest.raises(TransientError, match="no XML"):
        _entries(b"<html>", "")
    with pytest.raises(TransientError, match="empty"):
        _entries(listing(), "")


def test_entities_are_not_resolved() -> None:
    document = (
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
        b'<d:multistatus xmlns:d="DAV:"><d:response><d:href>/&e;</d:href></d:response></d:multistatus>'
    )
    assert [one.path for one in _entries(document, "")] == [""]
