"""Folders of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.tenancy import tenant_scope
from config.errors import AppError, InvalidInputError, RejectedError
from connectors.base import Browsable, Deletion, Failure, Record
from connectors.models import Connection, SyncRun
from connectors.native import folder as folder_module
from connectors.native.folder import FolderConnector
from connectors.services.opening import open_connector
from tests.connectors.conftest import Syncs

Connect = Callable[..., Connection]
RETRY = SyncRun.Kind.RETRY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    """Two files, one of them in a folder."""
    settings.GROUNDWORK_LOCAL_FOLDERS = [str(tmp_path / "shares")]
    made = tmp_path / "shares" / "birds"
    (made / "水鸟").mkdir(parents=True)
    (made / "herons.md").write_text("# Herons\n\nHerons wade.\n")
    (made / "水鸟" / "苍鹭.txt").write_text("苍鹭涉水。")
    return made


@pytest.fixture
def connection(connect: Connect, folder: Path) -> Connection:
    return connect("folder", config={"path": str(folder)})


@pytest.fixture
def closed(monkeypatch: Any) -> set[str]:
    """Names of folders that cannot be listed, whoever asks."""
    names: set[str] = set()
    entries = folder_module._entries

    def listed(path: Path) -> list[os.DirEntry[str]]:
        if path.name in names:
            raise PermissionError(13, "Permission denied", str(path))
        return entries(path)

    monkeypatch.setattr(folder_module, "_entries", listed)
    return names


def test_files_become_documents_with_their_facts(syncs: Syncs, connection: Connection) -> None:
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (2, 0, 0, 0, 0))
    heron = syncs.documents()["水鸟/苍鹭.txt"]
    assert (heron.status, heron.title, heron.breadcrumbs) == ("ready", "苍鹭", ["水鸟"])
    assert heron.source_updated_at is not None


def test_only_what_has_changed_is_read(
    syncs: Syncs, connection: Connection, folder: Path, monkeypatch: Any
) -> None:
    syncs.run(connection)
    (folder / "herons.md").write_text("# Storks and herons\n")
    opened, read = folder_module._opened, []

    def noting(root: Path, way: Path) -> Any:
        read.append(str(way))
        return opened(root, way)

    monkeypatch.setattr(folder_module, "_opened", noting)
    run = syncs.run(connection)
    assert counts(run) == (0, 1, 1, 0, 0)
    assert read == ["herons.md"]


def test_deleted_and_moved_files_go(syncs: Syncs, connection: Connection, folder: Path) -> None:
    syncs.run(connection)
    (folder / "herons.md").unlink()
    (folder / "水鸟").rename(folder / "鸟")
    run = syncs.run(connection)
    assert counts(run) == (1, 0, 0, 2, 0)
    assert set(syncs.documents()) == {"鸟/苍鹭.txt"}


def test_a_folder_that_cannot_be_listed_keeps_its_files(
    syncs: Syncs, connection: Connection, folder: Path, closed: set[str]
) -> None:
    syncs.run(connection)
    closed.add("水鸟")
    (folder / "herons.md").unlink()
    run = syncs.run(connection)
    assert run.status == "partial"
    assert run.deleted == 0
    assert "Permission denied" in syncs.items()["水鸟"].error
    assert set(syncs.documents()) == {"herons.md", "水鸟/苍鹭.txt"}
    closed.clear()
    run = syncs.run(connection)
    assert run.status == "succeeded"
    assert set(syncs.documents()) == set(syncs.items()) == {"水鸟/苍鹭.txt"}


@pytest.mark.parametrize("gone", ["removed", "empty", "a file", "closed"])
def test_a_share_that_is_not_there_deletes_nothing(
    syncs: Syncs, connection: Connection, folder: Path, gone: str, closed: set[str]
) -> None:
    syncs.run(connection)
    folder.rename(folder.with_name("away"))
    if gone in {"empty", "closed"}:
        folder.mkdir()
    elif gone == "a file":
        folder.write_text("x")
    if gone == "closed":
        closed.add(folder.name)
    run = syncs.run(connection)
    assert run.status == ("partial" if gone == "empty" else "failed")
    assert len(syncs.documents()) == 2


def test_a_file_that_cannot_be_read_fails_alone_and_is_tried_again(
    syncs: Syncs, connection: Connection, folder: Path, monkeypatch: Any, keeper: Any
) -> None:
    opened = folder_module._opened

    def failing(root: Path, way: Path) -> Any:
        if way.name == "herons.md":
            raise RejectedError("herons.md cannot be read: Permission denied.")
        return opened(root, way)

    monkeypatch.setattr(folder_module, "_opened", failing)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (1, 0, 0, 0, 1))
    monkeypatch.setattr(folder_module, "_opened", opened)
    run = syncs.run(connection, kind=RETRY)
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 0, 0, 0))


def test_single_files_are_read_gone_or_unsure(
    connection: Connection, folder: Path, closed: set[str]
) -> None:
    (folder / "gone.md").write_text("x")
    connector: Any = open_connector(connection)
    (folder / "gone.md").unlink()
    events = list(connector.fetch(["gone.md", "herons.md"]))
    assert {type(event).__name__ for event in events} == {"Deletion", "Record"}
    closed.add("水鸟")
    events = list(connector.fetch(["水鸟/苍鹭.txt", "水鸟"]))
    assert not any(isinstance(event, Deletion) for event in events)
    assert {e.external_id for e in events if isinstance(e, Failure)} == {"水鸟", "水鸟/苍鹭.txt"}


def test_an_interrupted_run_reads_nothing_twice(
    syncs: Syncs, connection: Connection, folder: Path, monkeypatch: Any
) -> None:
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"Number {number}.")
    monkeypatch.setattr("connectors.native.folder._PAGE", 2)
    files = FolderConnector._files

    def broken(*arguments: Any) -> Iterator[Path]:
        for number, path in enumerate(files(*arguments)):
            if number == 4:
                raise RejectedError("Broken off.")
            yield path

    monkeypatch.setattr(FolderConnector, "_files", broken)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("failed", 4)
    monkeypatch.setattr(FolderConnector, "_files", files)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (2, 0, 4, 0, 0))


def test_links_lead_nowhere(
    syncs: Syncs, connection: Connection, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("secret")
    (folder / "file.txt").symlink_to(secret / "key.txt")
    (folder / "folder").symlink_to(secret)
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe.txt")
    syncs.run(connection)
    assert set(syncs.items()) == {"herons.md", "水鸟/苍鹭.txt"}


def test_what_is_exchanged_for_a_link_after_the_listing_is_not_read(
    connection: Connection, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "苍鹭.txt").write_text("secret")
    found = open_connector(connection).pull({})
    records: Any = {one.external_id: one for one in found if isinstance(one, Record)}
    (folder / "水鸟").rename(folder / "away")
    (folder / "水鸟").symlink_to(tmp_path / "secret")
    (folder / "herons.md").unlink()
    os.mkfifo(folder / "herons.md")
    for record in records.values():
        with pytest.raises(RejectedError):
            record.body.open()


def test_a_link_to_the_root_itself_is_followed_within_the_allowed(
    connect: Connect, syncs: Syncs, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (folder.parent / "inside").symlink_to(folder)
    (folder.parent / "out").symlink_to(tmp_path / "outside")
    assert (
        syncs.run(connect("folder", config={"path": str(folder.parent / "inside")})).inserted == 2
    )
    with pytest.raises(InvalidInputError):
        open_connector(connect("folder", config={"path": str(folder.parent / "out")})).check()


@pytest.mark.parametrize("path", ["/etc", "{root}/../secret", "relative", "", "~nobody9/x"])
def test_other_folders_are_refused(connect: Connect, folder: Path, path: str) -> None:
    connection = connect("folder", config={"path": path.format(root=folder.parent)})
    with pytest.raises(InvalidInputError):
        open_connector(connection).check()


def test_without_the_operators_word_there_is_no_folder(
    settings: Any, connection: Connection, folder: Path
) -> None:
    assert open_connector(connection).check() == f"{folder}: 2 entries"
    settings.GROUNDWORK_LOCAL_FOLDERS = []
    with pytest.raises(InvalidInputError, match="GROUNDWORK_LOCAL_FOLDERS"):
        open_connector(connection).check()


def test_patterns_and_hidden_names(connect: Connect, syncs: Syncs, folder: Path) -> None:
    for name in ("a.md", "b.txt", "old/c.md", ".hidden.md", ".git/d.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"About {name}.")
    config = {"path": str(folder), "include": ["*.md", "水鸟/*"], "exclude": ["old/*", "herons.*"]}
    syncs.run(connect("folder", config=config))
    assert set(syncs.items()) == {"a.md", "水鸟/苍鹭.txt"}
    syncs.run(connect("folder", name="All", config={**config, "hidden": True}))
    assert {".hidden.md", ".git/d.md"} < set(syncs.items())


def test_odd_names_are_kept_apart(
    syncs: Syncs, connection: Connection, folder: Path, keeper: Any
) -> None:
    names = [b"new\nline.txt", b"caf\xe9.txt", b"\xff\xfe/x.txt", b" .. .txt", b"a" * 250 + b".txt"]
    for name in names:
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"Odd " + name.hex().encode())
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 7)
    documents = syncs.documents()
    assert documents["caf\\xe9.txt"].title == "caf\\xe9"
    assert documents["\\xff\\xfe/x.txt"].breadcrumbs == ["\\xff\\xfe"]
    with tenant_scope(keeper.tenant_id):
        connection.items.filter(external_id__contains="caf").update(status="failed", version="")
    assert syncs.run(connection, kind=RETRY).status == "succeeded"


def test_folders_can_be_browsed(connection: Connection, folder: Path, tmp_path: Path) -> None:
    connector: Any = open_connector(connection)
    assert isinstance(connector, Browsable)
    (folder / "水鸟" / "深").mkdir()
    (folder / "link").symlink_to(tmp_path)
    assert [node.id for node in connector.browse("")] == ["水鸟"]
    assert [(node.id, node.title) for node in connector.browse("水鸟")] == [("水鸟/深", "深")]
    for outside in ("..", "../..", "/etc", "link", "nowhere", "\x00"):
        with pytest.raises(AppError):
            connector.browse(outside)
