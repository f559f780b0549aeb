"""Google Drive's own API description: My Drive, a shared drive, folders, and a log of changes."""

from __future__ import annotations

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
    Notice,
    Record,
)
from connectors.models import Connection
from connectors.native.google.drive import GoogleDriveConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
_FILES = "/drive/v3/files"
_FOLDER = "application/vnd.google-apps.folder"
_DOC = "application/vnd.google-apps.document"
_ME = {"id": "p1", "type": "user", "emailAddress": "me@example.com"}


class Drive:
    """Files by id, and the changes since the position 1."""

    def __init__(self, server: Vendor) -> None:
        self.server = server
        self.files: dict[str, dict[str, Any]] = {}
        self.changes: list[dict[str, Any]] = []
        self.permissions: dict[str, list[dict[str, Any]]] = {}
        self.refuses_drive = False
        self.too_large: set[str] = set()
        server.app.auth = False
        server.on("GET /drive/v3/about", {"user": {"emailAddress": "me@example.com"}})
        server.on("GET /drive/v3/drives", {"drives": [{"id": "D1", "name": "团队"}]})
        server.on(
            "GET /drive/v3/changes/startPageToken",
            lambda _asked, _: {"startPageToken": str(len(self.changes))},
        )
        server.on("GET /drive/v3/changes", self._log)
        server.on(f"GET {_FILES}", self._list)
        server.on(f"GET {_FILES}/{{fileId}}", self._file)
        server.on(f"GET {_FILES}/{{fileId}}/export", self._export)
        server.on(f"GET {_FILES}/{{fileId}}/permissions", self._permissions)
        self.add("root", "My Drive", _FOLDER, parents=[], listed=False)
        self.add("D1", "Drive", _FOLDER, parents=[], listed=False, driveId="D1")

    def add(self, key: str, name: str, kind: str = "text/plain", **facts: Any) -> None:
        """Put a file or folder somewhere."""
        file = {
            "id": key, "name": name, "mimeType": kind, "parents": ["root"], "trashed": False, "ownedByMe": True,
            "createdTime": "2025-01-01T00:00:00Z", "modifiedTime": "2025-01-02T00:00:00Z",
            "webViewLink": f"https://drive.google.com/{key}", "owners": [{"displayName": "Ana"}],
        }  # fmt: skip
        if kind != _FOLDER:
            file |= {"permissions": [_ME]}
        if not kind.startswith("application/vnd.google-apps"):
            file |= {"md5Checksum": f"md5-{key}", "size": "12"}
        self.files[key] = {**file, **facts}

    def change(self, key: str, **change: Any) -> None:
        """Write an entry of the log."""
        file = {"file": self._shown(self.files[key])} if key in self.files else {"removed": True}
        self.changes.append({"changeType": "file", "fileId": key, **file, **change})

    def _shown(self, file: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in file.items() if key != "listed"}

    def _list(self, asked: Asked, _: Any) -> Any:
        query, drive = asked.query["q"], asked.query.get("driveId")
        if drive and self.refuses_drive:
            raise Refusal(403, {"error": {"errors": [{"reason": "insufficientPermissions"}]}})
        found = [
            one for one in self.files.values() if one.get("listed", True) and not one["trashed"]
        ]
        if asked.query.get("corpora") != "allDrives":
            found = [one for one in found if one.get("driveId") == drive]
        if match := re.search(r"'([\w-]+)' in parents", query):
            found = [one for one in found if match[1] in one["parents"]]
        if "'me' in owners" in query:
            found = [one for one in found if one["ownedByMe"]]
        page, after = pages(list(map(self._shown, found)), asked.query.get("pageToken"), 2)
        return {"files": page} | ({"nextPageToken": after} if after else {})

    def _log(self, asked: Asked, _: Any) -> Any:
        if asked.query["pageToken"] == "stale":
            raise Refusal(410)
        mine = [
            one for one in self.changes
            if one.get("file", {}).get("driveId") == asked.query.get("driveId")
        ] if int(asked.query["pageToken"]) < len(self.changes) else []  # fmt: skip
        return {"changes": mine, "newStartPageToken": str(len(self.changes))}

    def _file(self, asked: Asked, answer: Any) -> Any:
        key = asked.path["fileId"]
        if key not in self.files:
            raise Refusal(404)
        return self._shown(self.files[key])

    def _export(self, asked: Asked, _: Any) -> Any:
        if asked.path["fileId"] in self.too_large and asked.query["mimeType"] != "text/plain":
            raise Refusal(403, {"error": {"errors": [{"reason": "exportSizeLimitExceeded"}]}})
        return f"{asked.query['mimeType']} 苍鹭"

    def _permissions(self, asked: Asked, _: Any) -> Any:
        if asked.path["fileId"] not in self.permissions:
            raise Refusal(403)
        return {"permissions": self.permissions[asked.path["fileId"]]}


@pytest.fixture
def drive(vendor: StartVendor, monkeypatch: pytest.MonkeyPatch) -> Drive:
    known = Drive(vendor("google_drive"))
    monkeypatch.setattr(GoogleDriveConnector, "root", known.server.url)
    return known


def made(**config: Any) -> GoogleDriveConnector:
    """A connector to it."""
    return make_connector(GoogleDriveConnector, config, {"access_token": "t"}, method="oauth")


def pull(connector: GoogleDriveConnector, cursor: Cursor | None = None) -> list[Event]:
    """Everything of a run."""
    return list(connector.pull(cursor or {}))


def records(events: list[Event]) -> dict[str, Record]:
    """Records by id."""
    return {one.external_id: one for one in events if isinstance(one, Record)}


def gone(events: list[Event]) -> list[str]:
    """What the source says is gone."""
    return [one.external_id for one in events if isinstance(one, Deletion)]


def end(events: list[Event]) -> Cursor:
    """The last position."""
    last = events[-1]
    assert isinstance(last, Checkpoint)
    return last.cursor


def content(record: Record) -> str:
    """What its file holds."""
    assert isinstance(record.body, File)
    with record.body.open() as file:
        return file.read().decode().strip('"')  # the description serves exports as JSON


def test_all_drives_are_listed(drive: Drive) -> None:
    drive.add("f1", "鸟类", _FOLDER)
    drive.add("a", "苍鹭.txt", parents=["f1"])
    drive.add("b", "Plan", _DOC)
    drive.add("c", "Team.txt", driveId="D1", parents=["D1"])
    drive.add("d", "Form", "application/vnd.google-apps.form")
    drive.add("e", "Large.txt", size="99000000")
    events = pull(made())
    found = records(events)
    assert set(found) == {"a", "b", "c"}
    assert (found["a"].breadcrumbs, found["a"].version) == (("My Drive", "鸟类"), "md5-a")
    assert found["c"].breadcrumbs == ("团队",)
    assert isinstance(found["b"].body, File)
    assert found["b"].body.filename == "Plan.docx"
    assert content(found["b"]).endswith("wordprocessingml.document 苍鹭")
    assert {one.scope for one in events if isinstance(one, Complete)} == {"my-drive", "D1"}
    assert end(events) == {"drives": {"my-drive": {"token": "0"}, "D1": {"token": "0"}}}


def test_files_are_fetched_as_they_are(drive: Drive) -> None:
    drive.add("a", "苍鹭.txt")
    record = records(pull(made()))["a"]
    drive.server.files[f"{_FILES}/a"] = "苍鹭".encode()
    assert content(record) == "苍鹭"


def test_later_runs_follow_the_log(drive: Drive) -> None:
    for key in ("a", "b", "c"):
        drive.add(key, f"{key}.txt")
    cursor = end(pull(made()))
    drive.add("a", "a.txt", md5Checksum="new")
    drive.change("a")
    drive.files["b"]["trashed"] = True
    drive.change("b")
    del drive.files["c"]
    drive.change("c")
    events = pull(made(), cursor)
    assert {key: one.version for key, one in records(events).items()} == {"a": "new"}
    assert sorted(gone(events)) == ["b", "c"]
    assert not [one for one in events if isinstance(one, Complete)]
    assert end(events)["drives"]["my-drive"] == {"token": "3"}
    assert records(pull(made(), end(events))) == {}


def test_a_folder_in_the_bin_takes_its_files_along(drive: Drive) -> None:
    drive.add("f1", "Old", _FOLDER)
    drive.add("a", "a.txt", parents=["f1"])
    drive.add("b", "b.txt")
    cursor = end(pull(made()))
    drive.files["f1"]["trashed"] = drive.files["a"]["trashed"] = True
    drive.change("f1")
    events = pull(made(), cursor)
    assert set(records(events)) == {"b"}
    assert Complete("my-drive") in events


def test_a_position_that_google_has_forgotten_means_listing_anew(drive: Drive) -> None:
    drive.add("a", "a.txt")
    stale = {"drives": {"my-drive": {"token": "stale"}}}
    events = pull(made(shared_drives=False), stale)
    assert set(records(events)) == {"a"}
    assert Complete("my-drive") in events


def test_a_listing_goes_on_where_it_was_broken_off(drive: Drive) -> None:
    for key in "abcde":
        drive.add(key, f"{key}.txt")
    connector = made(shared_drives=False)
    first = next(one for one in connector.pull({}) if isinstance(one, Checkpoint))
    events = pull(made(shared_drives=False), first.cursor)
    assert set(records(events)) == {"c", "d", "e"}
    assert Complete("my-drive") not in events
    assert end(events) == {"drives": {"my-drive": {"token": "0"}}}


def test_one_drive_that_refuses_does_not_lose_the_others(drive: Drive) -> None:
    drive.add("a", "a.txt")
    drive.refuses_drive = True
    events = pull(made())
    assert set(records(events)) == {"a"}
    assert [one.message for one in events if isinstance(one, Notice)] == [
        "团队 could not be read completely. 127.0.0.1 does not allow this (403)."
    ]
    assert Complete("D1") not in events


def test_a_drive_that_is_gone_is_swept(drive: Drive) -> None:
    drive.add("c", "c.txt", driveId="D1", parents=["D1"])
    cursor = end(pull(made()))
    drive.server.on("GET /drive/v3/drives", {"drives": []})
    events = pull(made(), cursor)
    assert Complete("D1") in events
    assert "D1" not in end(events)["drives"]


def test_chosen_folders_are_followed_with_what_lies_below(drive: Drive) -> None:
    drive.add("f1", "Chosen", _FOLDER)
    drive.add("f2", "Below", _FOLDER, parents=["f1"])
    drive.add("a", "a.txt", parents=["f1"])
    drive.add("b", "b.txt", parents=["f2"])
    drive.add("c", "c.txt")
    connector = made(folders=["https://drive.google.com/drive/folders/f1?usp=sharing"])
    cursor = end(pull(connector))
    assert set(records(pull(connector))) == {"a", "b"}
    drive.files["a"]["parents"] = ["root"]
    drive.change("a")
    drive.files["c"]["parents"] = ["f2"]
    drive.change("c")
    events = pull(made(folders=["f1"]), cursor)
    assert (set(records(events)), gone(events)) == ({"c"}, ["a"])
    with pytest.raises(InvalidInputError, match="no folder f9"):
        made(folders=["f9"]).check()


def test_files_shared_with_me_may_be_left_out(drive: Drive) -> None:
    drive.add("a", "a.txt")
    drive.add("b", "b.txt", ownedByMe=False)
    assert set(records(pull(made(shared_with_me=False)))) == {"a"}


def test_permissions_become_principals(drive: Drive) -> None:
    rows = [
        {"id": "p2", "type": "group", "emailAddress": "eng@example.com"},
        {"id": "p3", "type": "domain", "domain": "example.com"},
        {"id": "p4", "type": "user", "emailAddress": "left@example.com", "deleted": True},
    ]
    drive.add("a", "a.txt", permissions=[_ME, *rows])
    drive.add("b", "b.txt", permissions=[{"id": "anyoneWithLink", "type": "anyone"}])
    team: dict[str, Any] = {"driveId": "D1", "parents": ["D1"]}
    for key in ("c", "d", "e"):
        drive.add(key, f"{key}.txt", **team, permissionIds=["p1", "p9"])
        del drive.files[key]["permissions"]
    drive.files["e"]["permissionIds"] = ["p8"]
    bo = {"id": "p9", "type": "user", "emailAddress": "bo@example.com"}
    drive.permissions = {"c": [_ME, bo]}
    found = {key: sorted(one.principals or ()) for key, one in records(pull(made())).items()}
    assert found == {
        "a": ["group:eng@example.com", "group:example.com", "user:me@example.com"],
        "b": ["public"],
        "c": ["user:bo@example.com", "user:me@example.com"],
        "d": ["user:bo@example.com", "user:me@example.com"],
        "e": ["user:me@example.com"],
    }
    asked = drive.server.asked(f"GET {_FILES}/{{fileId}}/permissions")
    assert len(asked) == 2, "known permissions are not asked for again"


def test_shortcuts_stand_for_what_they_lead_to(drive: Drive) -> None:
    drive.add("t", "Target.txt", listed=False)
    kind = "application/vnd.google-apps.shortcut"
    drive.add(
        "s", "Shortcut", kind, shortcutDetails={"targetId": "t", "targetMimeType": "text/plain"}
    )
    drive.add(
        "x", "Dead", kind, shortcutDetails={"targetId": "gone", "targetMimeType": "text/plain"}
    )
    assert set(records(pull(made()))) == {"t"}


def test_what_is_too_large_to_export_comes_as_text(drive: Drive) -> None:
    drive.add("b", "Plan", _DOC)
    drive.too_large = {"b"}
    assert content(records(pull(made()))["b"]) == "text/plain 苍鹭"


def test_the_drives_are_searched_within_what_is_chosen(drive: Drive) -> None:
    drive.add("f1", "Chosen", _FOLDER)
    drive.add("a", "Plan", _DOC, parents=["f1"])
    drive.add("b", "b.txt")
    hits = made(folders=["f1"]).search("Ana's \\ heron", 5)
    assert [(one.external_id, one.text) for one in hits] == [("a", '"text/plain 苍鹭"')]
    asked = drive.server.asked(f"GET {_FILES}")[-1]
    assert asked["q"] == "fullText contains 'Ana\\'s \\\\ heron' and trashed = false"


def test_single_files_and_places(drive: Drive) -> None:
    drive.add("a", "a.txt")
    drive.add("f1", "Folder", _FOLDER)
    events = list(made().fetch(["a", "gone"]))
    assert (set(records(events)), gone(events)) == ({"a"}, ["gone"])
    assert [node.title for node in made().browse("")] == ["My Drive", "团队"]
    assert "f1" in {node.id for node in made().browse("root")}
    assert made().check() == "me@example.com: My Drive, 团队"


def test_limits_and_refusals_say_what_to_do(drive: Drive) -> None:
    drive.server.refuse_next(
        403, {"error": {"errors": [{"reason": "userRateLimitExceeded"}]}}, times=4
    )
    with pytest.raises(RateLimitedError):
        pull(made())
    drive.server.refuse_next(401)
    with pytest.raises(CredentialsError):
        made().check()


def test_a_run_stores_updates_and_deletes(
    drive: Drive, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    drive.add("a", "苍鹭.txt")
    drive.add("b", "b.txt")
    for key in ("a", "b"):
        drive.server.files[f"{_FILES}/{key}"] = f"苍鹭 {key}".encode()
    connection = connect("google-drive", credentials={"access_token": "t"})
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 2, "")
    drive.files["a"]["md5Checksum"] = "new"
    drive.server.files[f"{_FILES}/a"] = "白鹭".encode()
    drive.change("a")
    del drive.files["b"]
    drive.change("b")
    run = syncs.run(connection)
    assert (run.status, run.updated, run.deleted) == ("succeeded", 1, 1)
    assert syncs.documents()["a"].breadcrumbs == ["My Drive"]
