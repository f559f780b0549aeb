"""Files of Google Drive as records: exported, placed in their folders, with who may read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, BinaryIO

from config.errors import RejectedError
from connectors.base import File, Record
from connectors.native.google.api import GoogleApi, moment
from connectors.native.paging import Page, follow_pages

FOLDER = "application/vnd.google-apps.folder"
SHORTCUT = "application/vnd.google-apps.shortcut"
FIELDS = (
    "id,name,mimeType,md5Checksum,modifiedTime,createdTime,size,parents,trashed,webViewLink,driveId,"
    "ownedByMe,owners(displayName),description,shortcutDetails(targetId,targetMimeType),permissionIds,"
    "permissions(id,type,emailAddress,domain,deleted,view)"
)
_PERMISSION_FIELDS = "nextPageToken,permissions(id,type,emailAddress,domain,deleted,view)"
_NATIVE = "application/vnd.google-apps."
_OFFICE = "application/vnd.openxmlformats-officedocument."
# As Office files, which keep headings, tables, sheets and speaker notes; Google's Markdown would carry every
# picture inside it. What exceeds the 10 MB that Google exports comes as plain text.
_EXPORTS = {
    "document": (f"{_OFFICE}wordprocessingml.document", ".docx", "text/plain"),
    "spreadsheet": (f"{_OFFICE}spreadsheetml.sheet", ".xlsx", "text/csv"),
    "presentation": (f"{_OFFICE}presentationml.presentation", ".pptx", "text/plain"),
}
_DEEPEST = 50


class DriveFiles:
    """What is known of files and folders during one run."""

    def __init__(
        self, api: GoogleApi, me: str, max_bytes: int, drive_names: Mapping[str, str]
    ) -> None:
        self._api, self._me, self._max_bytes = api, me, max_bytes
        self._drive_names = drive_names
        self._folders: dict[str, Mapping[str, Any] | None] = {}
        self._principals: dict[str, str] = {}  # of permissions by their ids

    def remember(self, folder: Mapping[str, Any]) -> None:
        """A folder that was met in a listing."""
        self._folders[folder["id"]] = folder

    def find(self, file_id: str) -> Mapping[str, Any] | None:
        """A file as it is now."""
        found: Mapping[str, Any] | None = self._api.find(
            f"/files/{file_id}", fields=FIELDS, supportsAllDrives="true"
        )
        return found

    def record(self, file: Mapping[str, Any], scope: str) -> Record | None:
        """A file as a record; None for what holds no text or is too large. A shortcut stands for what it
        leads to, unless that is a folder."""
        if file["mimeType"] == SHORTCUT:
            target = self.find(file["shortcutDetails"]["targetId"])
            usable = (
                target
                and not target.get("trashed")
                and target["mimeType"] not in {SHORTCUT, FOLDER}
            )
            return self.record(target, scope) if target and usable else None
        kind = file["mimeType"].removeprefix(_NATIVE)
        is_native, size = kind != file["mimeType"], int(file.get("size") or 0)
        if (is_native and kind not in _EXPORTS) or size > self._max_bytes:
            return None
        return Record(
            external_id=file["id"],
            title=file["name"],
            body=self._exported(file, kind) if is_native else self._stored(file, size),
            version=file.get("md5Checksum") or file.get("modifiedTime", ""),
            scope=scope,
            url=file.get("webViewLink", ""),
            author=", ".join(one.get("displayName", "") for one in file.get("owners", ())),
            breadcrumbs=tuple(one["name"] for one in reversed(self.folders_of(file))),
            created_at=moment(file.get("createdTime")),
            updated_at=moment(file.get("modifiedTime")),
            metadata={"mime_type": file["mimeType"], "description": file.get("description", "")},
            principals=self._readers(file),
        )

    def folders_of(self, file: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The folders a file is in, the nearest first."""
        found: list[Mapping[str, Any]] = []
        parents = file.get("parents")
        while parents and len(found) < _DEEPEST:
            folder = self._folder(parents[0])
            if folder is None:
                break
            found.append(folder)
            parents = folder.get("parents")
        return found

    def text(self, file: Mapping[str, Any], max_bytes: int) -> str:
        """The beginning of what is text; empty for other files."""
        kind = file["mimeType"]
        is_native = kind in {f"{_NATIVE}document", f"{_NATIVE}presentation"}
        if not is_native and not kind.startswith("text/"):
            return ""
        try:
            with self._export(file, "text/plain") if is_native else self._media(file) as stream:
                return stream.read(max_bytes).decode("utf-8", "ignore").lstrip("\ufeff")
        except RejectedError:
            return ""

    def _folder(self, folder_id: str) -> Mapping[str, Any] | None:
        if folder_id not in self._folders:
            found = self._api.find(
                f"/files/{folder_id}", fields="id,name,parents", supportsAllDrives="true"
            )
            if found and folder_id in self._drive_names:
                found = {**found, "name": self._drive_names[folder_id]}
            self._folders[folder_id] = found
        return self._folders[folder_id]

    # --- content ---------------------------------------------------------------------------------

    def _stored(self, file: Mapping[str, Any], size: int) -> File:
        kind = "" if file["mimeType"] == "application/octet-stream" else file["mimeType"]
        return File(partial(self._media, file), file["name"], kind, size)

    def _exported(self, file: Mapping[str, Any], kind: str) -> File:
        office, suffix, plain = _EXPORTS[kind]
        return File(partial(self._export, file, office, plain), file["name"] + suffix, office)

    def _media(self, file: Mapping[str, Any]) -> AbstractContextManager[BinaryIO]:
        params = {"alt": "media", "supportsAllDrives": "true"}
        return self._api.download(f"/files/{file['id']}", params, self._max_bytes)

    @contextmanager
    def _export(
        self, file: Mapping[str, Any], kind: str, otherwise: str = ""
    ) -> Iterator[BinaryIO]:
        path = f"/files/{file['id']}/export"
        try:
            with self._api.download(path, {"mimeType": kind}, self._max_bytes) as stream:
                yield stream
                return
        except RejectedError as error:
            if error.status != 403 or not otherwise:
                raise
        with self._api.download(path, {"mimeType": otherwise}, self._max_bytes) as stream:
            yield stream

    # --- readers ---------------------------------------------------------------------------------

    def _readers(self, file: Mapping[str, Any]) -> frozenset[str]:
        """Google tells the permissions of one's own files, and their ids for those of shared drives; else
        they are asked for. Where they are not shown, the account that signs in is known to read."""
        rows, ids = file.get("permissions"), file.get("permissionIds") or ()
        if rows is None and (not ids or not self._principals.keys() >= set(ids)):
            try:
                rows = self._permissions(file["id"])
            except RejectedError:
                return frozenset({f"user:{self._me}"})
        for row in rows or ():
            self._principals[row["id"]] = _principal(row)
        found = {self._principals[one] for one in ([row["id"] for row in rows] if rows else ids)}
        return frozenset(found - {""})

    def _permissions(self, file_id: str) -> list[Mapping[str, Any]]:
        params: dict[str, Any] = {
            "supportsAllDrives": "true",
            "pageSize": 100,
            "fields": _PERMISSION_FIELDS,
        }

        def fetch(page: str) -> Page[Mapping[str, Any]]:
            token = {"pageToken": page} if page else {}
            answer = self._api.get(f"/files/{file_id}/permissions", **params, **token)
            return answer["permissions"], answer.get("nextPageToken", "")

        return [row for rows in follow_pages(fetch) for row in rows]


def _principal(row: Mapping[str, Any]) -> str:
    """Who a permission is for; empty for nobody. Members of groups and domains are not Drive's to tell."""
    if row.get("deleted") or row.get("view"):
        return ""
    match row["type"]:
        case "anyone":
            return "public"
        case "domain":
            return f"group:{row['domain']}"
        case kind:
            return f"{kind}:{row['emailAddress']}" if row.get("emailAddress") else ""
