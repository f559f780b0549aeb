"""Google Drive: one's own files, those shared with one, and shared drives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Context,
    Cursor,
    Deletion,
    Event,
    Failure,
    LiveHit,
    LiveSearch,
    Node,
    Notice,
    Refetch,
    Settings,
)
from connectors.native.google.api import GoogleApi, google_sign_in, moment
from connectors.native.google.drive_files import FIELDS, FOLDER, DriveFiles

_LIST_PAGE, _CHANGES_PAGE = 200, 500
_EXCERPT_BYTES = 4000
_STALE = frozenset({400, 404, 410})  # a page or a position that Google no longer knows
_MINE = "my-drive"


class GoogleDriveConfig(Settings):
    """Which drives and folders."""

    my_drive: bool = Field(default=True, title="My Drive")
    shared_with_me: bool = Field(default=True, title="Files shared with me")
    shared_drives: bool = Field(default=True, title="Shared drives")
    only_drives: list[str] = Field(
        default=[], title="Only these shared drives", description="Names or ids; empty: all."
    )
    folders: list[str] = Field(
        default=[],
        title="Only these folders",
        description="Ids or addresses, with what lies below; empty: everything.",
    )
    max_file_mb: int = Field(default=50, ge=1, le=1000, title="Largest file, in MB")


@dataclass(frozen=True, slots=True)
class _Place:
    """A drive with its own log of changes; only some of its folders, perhaps."""

    key: str
    name: str
    roots: tuple[str, ...] = ()

    @property
    def params(self) -> dict[str, str]:
        """How requests name it."""
        params = {"supportsAllDrives": "true"}
        if self.key != _MINE:
            params |= {"driveId": self.key, "includeItemsFromAllDrives": "true"}
        return params


class GoogleDriveConnector(Connector[GoogleDriveConfig], LiveSearch, Browsable, Refetch):
    """Each drive is listed once and then followed by its log of changes. Members of groups and domains that
    files are shared with are not known to Drive: such a principal has none until someone enters them."""

    places_field = "folders"
    spec = ConnectorSpec(
        kind="google-drive",
        name="Google Drive",
        description="Documents, sheets, slides and files of My Drive and shared drives.",
        category=Category.FILES,
        config=GoogleDriveConfig,
        auth=(google_sign_in("drive.readonly"),),
        capabilities=frozenset(
            {
                Capability.INCREMENTAL,
                Capability.DELETIONS,
                Capability.FILES,
                Capability.ACCESS_CONTROL,
            }
        ),
        documentation_url="https://developers.google.com/workspace/drive/api",
        rate_limit="100/second",
    )
    root: ClassVar[str] = "https://www.googleapis.com"

    def __init__(self, config: GoogleDriveConfig, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        self._api = GoogleApi(context, f"{self.root}/drive/v3")
        self._missing: list[str] = []  # of the chosen folders

    def check(self) -> str:
        """Who signs in, and which drives are read."""
        names = ", ".join(place.name for place in self._places)
        if self._missing:
            raise InvalidInputError(f"There is no folder {', '.join(self._missing)}.")
        return f"{self._me}: {names or 'no drive chosen'}"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """One drive after the other. One that cannot be read is reported and left as it was."""
        positions = {key: dict(one) for key, one in cursor.get("drives", {}).items()}
        for place in self._places:
            position = positions.setdefault(place.key, {})
            try:
                for event in self._read(place, position):
                    yield event or _checkpoint(positions)
            except RejectedError as error:
                yield Notice(f"{place.name} could not be read completely. {error.message}")
        yield from (Notice(f"The folder {text} is not there.") for text in self._missing)
        for key in positions.keys() - {place.key for place in self._places}:
            yield Complete(key)
            del positions[key]
        yield _checkpoint(positions)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files."""
        for external_id in external_ids:
            try:
                file = self._files.find(external_id)
                yield self._event(file, self._place_of(file)) if file else Deletion(external_id)
            except RejectedError as error:
                yield Failure(external_id, error.message)

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Drive's own full-text search, within what is configured."""
        words = query.replace("\\", "\\\\").replace("'", "\\'")
        params = {"corpora": "allDrives", "includeItemsFromAllDrives": "true"}
        answer = self._api.get(
            "/files", q=f"fullText contains '{words}' and trashed = false", pageSize=limit,
            supportsAllDrives="true", fields=f"files({FIELDS})", **(params if self._shared else {}),
        )  # fmt: skip
        return [self._hit(file) for file in answer["files"] if self._includes(file)]

    def browse(self, parent: str) -> list[Node]:
        """Drives, and the folders in them."""
        if not parent:
            nodes = [Node("root", "My Drive", has_children=True)]
            return nodes + [
                Node(key, name, has_children=True) for key, name in self._shared.items()
            ]
        query = f"'{_id(parent)}' in parents and mimeType = '{FOLDER}' and trashed = false"
        answer = self._api.get(
            "/files", q=query, pageSize=1000, orderBy="name", fields="files(id,name)",
            supportsAllDrives="true", includeItemsFromAllDrives="true",
        )  # fmt: skip
        return [Node(one["id"], one["name"], has_children=True) for one in answer["files"]]

    # --- listing ---------------------------------------------------------------------------------

    def _read(self, place: _Place, position: dict[str, Any]) -> Iterator[Event | None]:
        """None where a position may be kept."""
        if "token" in position and "queue" not in position:
            yield from self._changes(place, position)
        if "token" not in position or "queue" in position:
            yield from self._list(place, position)

    def _list(self, place: _Place, position: dict[str, Any]) -> Iterator[Event | None]:
        """Everything. What changes meanwhile is told by the log, whose position is taken first."""
        begins = "queue" not in position
        if begins:
            start = self._api.get("/changes/startPageToken", **_log_params(place))
            position |= {
                "token": start["startPageToken"],
                "queue": [*place.roots] or [""],
                "page": "",
            }
        met = set(position["queue"])
        while position["queue"]:
            answer = self._page(place, position["queue"][0], position["page"])
            for file in answer["files"]:
                if file["mimeType"] == FOLDER:
                    self._files.remember(file)
                    if place.roots and file["id"] not in met:
                        met.add(file["id"])
                        position["queue"].append(file["id"])
                elif isinstance(event := self._event(file, place), Deletion):
                    continue
                else:
                    yield event
            position["page"] = answer.get("nextPageToken", "")
            if not position["page"]:
                position["queue"].pop(0)
            yield None
        if begins:
            yield Complete(place.key)
        del position["queue"], position["page"]
        yield None

    def _page(self, place: _Place, folder: str, page: str) -> Any:
        query = "trashed = false" + (f" and '{folder}' in parents" if folder else "")
        if place.key == _MINE and not self.config.shared_with_me:
            query += " and 'me' in owners"
        params: dict[str, Any] = {"q": query, "pageSize": _LIST_PAGE, **place.params}
        params["corpora"] = "user" if place.key == _MINE else "drive"
        params["fields"] = f"nextPageToken,files({FIELDS})"
        try:
            return self._api.get("/files", **params, **({"pageToken": page} if page else {}))
        except RejectedError as error:
            if error.status != 400 or not page:
                raise
            return self._api.get("/files", **params)  # the page's token has run out

    # --- changes ---------------------------------------------------------------------------------

    def _changes(self, place: _Place, position: dict[str, Any]) -> Iterator[Event | None]:
        """What the log says. Ends without a position when everything is to be listed anew: when the log does
        not go back so far, or a folder was changed in a way that concerns what lies below."""
        while True:
            try:
                answer = self._api.get(
                    "/changes", pageToken=position["token"], pageSize=_CHANGES_PAGE,
                    includeRemoved="true", **place.params,
                    fields=f"nextPageToken,newStartPageToken,changes(changeType,fileId,removed,file({FIELDS}))",
                )  # fmt: skip
            except RejectedError as error:
                if error.status not in _STALE:
                    raise
                position.clear()
                return
            for change in answer["changes"]:
                if change.get("changeType") == "drive":
                    continue
                if self._concerns_many(place, change.get("file")):
                    position.clear()
                    return
                yield self._changed(change, place)
            position["token"] = answer.get("nextPageToken") or answer["newStartPageToken"]
            yield None
            if "nextPageToken" not in answer:
                return

    def _concerns_many(self, place: _Place, file: Mapping[str, Any] | None) -> bool:
        if not file or file.get("mimeType") != FOLDER:
            return False
        return bool(file.get("trashed") or place.roots)

    def _changed(self, change: Mapping[str, Any], place: _Place) -> Event:
        file = change.get("file")
        if change.get("removed") or not file or file.get("trashed"):
            return Deletion(change["fileId"])
        return self._event(file, place)

    # --- files -----------------------------------------------------------------------------------

    def _event(self, file: Mapping[str, Any], place: _Place) -> Event:
        try:
            is_gone = (
                file.get("trashed") or file["mimeType"] == FOLDER or not self._belongs(file, place)
            )
            record = None if is_gone else self._files.record(file, place.key)
        except RejectedError as error:
            return Failure(file["id"], error.message, place.key)
        return record or Deletion(file["id"])

    def _belongs(self, file: Mapping[str, Any], place: _Place) -> bool:
        if place.key == _MINE and not self.config.shared_with_me and not file.get("ownedByMe"):
            return False
        if not place.roots:
            return True
        return any(folder["id"] in place.roots for folder in self._files.folders_of(file))

    def _includes(self, file: Mapping[str, Any]) -> bool:
        key = file.get("driveId") or _MINE
        return any(place.key == key and self._belongs(file, place) for place in self._places)

    def _place_of(self, file: Mapping[str, Any]) -> _Place:
        key = file.get("driveId") or _MINE
        return next((place for place in self._places if place.key == key), _Place(key, key, ("-",)))

    def _hit(self, file: Mapping[str, Any]) -> LiveHit:
        return LiveHit(
            external_id=file["id"],
            title=file["name"],
            text=self._files.text(file, _EXCERPT_BYTES) or file.get("description") or file["name"],
            url=file.get("webViewLink", ""),
            created_at=moment(file.get("createdTime")),
            updated_at=moment(file.get("modifiedTime")),
            metadata={"mime_type": file["mimeType"]},
        )

    # --- what there is ---------------------------------------------------------------------------

    @cached_property
    def _me(self) -> str:
        return str(self._api.get("/about", fields="user(emailAddress)")["user"]["emailAddress"])

    @cached_property
    def _files(self) -> DriveFiles:
        return DriveFiles(self._api, self._me, self.config.max_file_mb * 1_000_000, self._shared)

    @cached_property
    def _shared(self) -> dict[str, str]:
        """The shared drives to be read, by id."""
        found: dict[str, str] = {}
        params: dict[str, Any] = {"pageSize": 100}
        while self.config.shared_drives:
            answer = self._api.get("/drives", **params)
            found |= {one["id"]: one["name"] for one in answer["drives"]}
            if not answer.get("nextPageToken"):
                break
            params["pageToken"] = answer["nextPageToken"]
        wanted = set(self.config.only_drives)
        if missing := wanted - found.keys() - set(found.values()):
            raise InvalidInputError(f"There is no shared drive {', '.join(sorted(missing))}.")
        return {key: name for key, name in found.items() if not wanted or {key, name} & wanted}

    @cached_property
    def _places(self) -> list[_Place]:
        if self.config.folders:
            return self._chosen_folders()
        mine = [_Place(_MINE, "My Drive")] if self.config.my_drive else []
        return mine + [_Place(key, name) for key, name in self._shared.items()]

    def _chosen_folders(self) -> list[_Place]:
        roots: dict[str, list[str]] = {}
        for text in self.config.folders:
            folder = self._files.find(_id(text))
            if folder is None or folder["mimeType"] != FOLDER:
                self._missing.append(text)
                continue
            self._files.remember(folder)
            roots.setdefault(folder.get("driveId") or _MINE, []).append(folder["id"])
        return [
            _Place(key, self._shared.get(key, "My Drive" if key == _MINE else key), tuple(folders))
            for key, folders in roots.items()
        ]


def _checkpoint(positions: Mapping[str, Mapping[str, Any]]) -> Checkpoint:
    return Checkpoint(
        {
            "drives": {
                key: {**one, **({"queue": [*one["queue"]]} if "queue" in one else {})}
                for key, one in positions.items()
            }
        }
    )


def _log_params(place: _Place) -> dict[str, str]:
    return {key: value for key, value in place.params.items() if key != "includeItemsFromAllDrives"}


def _id(text: str) -> str:
    """An id, out of what people paste. Ids are letters, digits, - and _."""
    match = re.search(r"(?:folders/|id=|^)([\w-]+)(?:[/?].*)?$", text.strip())
    if not match:
        raise InvalidInputError(f"{text!r} names no folder.")
    return match[1]
