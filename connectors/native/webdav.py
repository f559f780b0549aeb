"""Files on a WebDAV server, such as Nextcloud, ownCloud or a NAS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Literal
from urllib.parse import quote, unquote, urlsplit

from lxml import etree
from pydantic import Field

from config.errors import InvalidInputError, RejectedError, TransientError
from config.http import HttpClient
from connectors.base import (
    NO_AUTH,
    BasicCredentials,
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    Failure,
    File,
    Node,
    Record,
    Refetch,
    Settings,
    basic_auth,
    token_auth,
)
from connectors.patterns import is_wanted

_DEEPEST = 64  # a link that leads back to its own folder goes deeper and deeper
_MOST_FAILING = 3  # folders in a row that the server fails to list end the run
_ASK = (
    b'<?xml version="1.0"?><d:propfind xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns"><d:prop>'
    b"<d:resourcetype/><d:getetag/><d:getlastmodified/><d:getcontentlength/><d:getcontenttype/>"
    b"<oc:fileid/></d:prop></d:propfind>"
)
_HEADERS = {"Content-Type": "application/xml; charset=utf-8"}
_NAMES = {"d": "DAV:", "oc": "http://owncloud.org/ns"}


class WebdavConfig(Settings):
    """Which server, and which of its files."""

    url: str = Field(
        title="Address",
        description="Of the folder, e.g. https://dav.example.com/files/. For Nextcloud and ownCloud: of the site.",
        pattern="^https?://",
    )
    product: Literal["generic", "nextcloud", "owncloud"] = Field(
        default="generic", title="Product", description="Nextcloud and ownCloud: the user's files."
    )
    folders: list[str] = Field(
        default=[], title="Folders", description="Such as Handbook/2024; empty: everything."
    )
    include: list[str] = Field(
        default=[], title="Only these", description="Patterns such as *.pdf; empty: everything."
    )
    exclude: list[str] = Field(
        default=[], title="Not these", description="Patterns such as *.tmp or archive/*."
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the server says of a file or folder; `path` is relative to the address, without percent signs."""

    path: str
    is_folder: bool
    etag: str = ""
    modified: str = ""
    size: int | None = None
    content_type: str = ""
    file_id: str = ""


class WebdavConnector(Connector[WebdavConfig], Browsable, Refetch):
    """Walks all folders each time, one request a folder; files are read when their tag has changed. A run
    that broke off walks again, which is cheap: what it has stored is not read twice."""

    places_field = "folders"
    spec = ConnectorSpec(
        kind="webdav",
        name="WebDAV",
        description="Files on a WebDAV server: Nextcloud, ownCloud, a NAS.",
        category=Category.FILES,
        config=WebdavConfig,
        auth=(
            basic_auth(hint="Nextcloud and ownCloud: make an app password in the settings."),
            token_auth(),
            NO_AUTH,
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        documentation_url="https://www.rfc-editor.org/rfc/rfc4918",
    )

    def check(self) -> str:
        """The folder, when it can be listed."""
        count = sum(len(self._children(folder)) for folder in self._roots())
        return f"{urlsplit(self._base).hostname}: {count} entries"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every file. Unless all folders could be listed nothing counts as deleted."""
        failed = False
        for event in self._walk():
            failed = failed or isinstance(event, Failure)
            yield event
        yield Checkpoint({})
        if not failed:
            yield Complete()

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files; what is a folder is left to the next walk."""
        for path in external_ids:
            try:
                found = self._ask(path, "0")[:1]
            except RejectedError as error:
                yield Failure(path, error.message)
                continue
            yield from (self._record(entry) for entry in found if not entry.is_folder)

    def browse(self, parent: str) -> list[Node]:
        """Folders in a folder."""
        folders = sorted(entry.path for entry in self._children(parent) if entry.is_folder)
        return [Node(path, PurePosixPath(path).name, has_children=True) for path in folders]

    # --- walking -------------------------------------------------------------------------------

    def _walk(self) -> Iterator[Event]:
        stack, failing = [*reversed(self._roots())], 0
        while stack:
            self.context.pause(0)
            folder = stack.pop()
            try:
                entries = sorted(self._children(folder), key=lambda entry: entry.path)
                failing = 0
            except (RejectedError, TransientError) as error:
                failing += isinstance(error, TransientError)
                if not folder or failing >= _MOST_FAILING:
                    raise
                yield Failure(folder, f"Cannot be listed. {error.message}")
                continue
            yield from (self._record(one) for one in entries if self._is_wanted(one))
            yield Checkpoint({})
            stack += [
                one.path
                for one in reversed(entries)
                if one.is_folder and is_wanted(one.path, (), self.config.exclude)
            ]

    def _is_wanted(self, entry: _Entry) -> bool:
        wanted = is_wanted(entry.path, self.config.include, self.config.exclude)
        return wanted and not entry.is_folder

    def _roots(self) -> list[str]:
        """The chosen folders, none of them inside another one."""
        kept: list[str] = []
        for folder in sorted({folder.strip("/") for folder in self.config.folders}) or [""]:
            if not any(folder == one or folder.startswith(f"{one}/") or not one for one in kept):
                kept.append(folder)
        return kept

    def _record(self, entry: _Entry) -> Record:
        path = PurePosixPath(entry.path)
        page = f"{self._site}/f/{entry.file_id}" if entry.file_id and self._site else ""
        return Record(
            external_id=entry.path,
            title=path.stem,
            body=File(partial(self._opened, entry.path), path.name, entry.content_type, entry.size),
            version=entry.etag or (entry.modified and f"{entry.modified}-{entry.size}"),
            url=page or self._address(entry.path),
            breadcrumbs=path.parts[:-1],
            updated_at=_moment(entry.modified),
            metadata={"path": entry.path},
        )

    def _opened(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._http.download(self._address(path), max_bytes=self.context.max_bytes)

    # --- asking --------------------------------------------------------------------------------

    @cached_property
    def _http(self) -> HttpClient:
        return self.context.client(self._base)

    @property
    def _site(self) -> str:
        generic = self.config.product == "generic"
        return "" if generic else self.config.url.split("/remote.php/")[0].rstrip("/")

    @property
    def _base(self) -> str:
        """The address of the root folder."""
        url = self.config.url.rstrip("/")
        if not self._site or "/remote.php/" in url:
            return url
        if not isinstance(self.credentials, BasicCredentials):
            raise InvalidInputError(
                "With a token, give the whole address: …/remote.php/dav/files/<user>/."
            )
        return f"{url}/remote.php/dav/files/{quote(self.credentials.username, safe='')}"

    def _address(self, path: str) -> str:
        return f"{self._base}/{quote(path)}"

    def _children(self, folder: str) -> list[_Entry]:
        if folder.count("/") > _DEEPEST:
            raise RejectedError("Folders lie too deep in one another.")
        return self._ask(folder, "1")[1:]

    def _ask(self, path: str, depth: str) -> list[_Entry]:
        """The thing itself, then what lies in it."""
        address = self._address(path) + ("/" if path and depth == "1" else "")
        answer = self._http.request(
            "PROPFIND", address, data=_ASK, headers={**_HEADERS, "Depth": depth},
            expected=frozenset({405, 501}),
        )  # fmt: skip
        if answer.status_code != 207:
            raise RejectedError("There is no WebDAV at this address.")
        return _entries(answer.content, path)


def _entries(document: bytes, path: str) -> list[_Entry]:
    """What a multi-status answer lists. Children are told by what their address has beyond that of the
    folder, so that it matters little where a proxy or a redirect has moved the tree."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError as error:
        raise TransientError("The server's listing is no XML.") from error
    found = [
        (unquote(urlsplit(one.findtext("d:href", "", _NAMES).strip()).path).rstrip("/"), one)
        for one in root.iterfind("d:response", _NAMES)
    ]
    if not found:
        raise TransientError("The server's listing is empty.")
    own = min((href for href, _ in found), key=len)
    entries = [_entry(path, one) for href, one in found if href == own][:1]
    for href, one in found:
        name = href.removeprefix(f"{own}/")
        if href.startswith(f"{own}/") and "/" not in name and name not in {"", ".", ".."}:
            entries.append(_entry(f"{path}/{name}".lstrip("/"), one))
    return entries


def _entry(path: str, one: Any) -> _Entry:
    def text(name: str) -> str:
        return str(one.findtext(f"d:propstat/d:prop/{name}", "", _NAMES)).strip()

    size = text("d:getcontentlength")
    return _Entry(
        path=path,
        is_folder=one.find("d:propstat/d:prop/d:resourcetype/d:collection", _NAMES) is not None,
        etag=text("d:getetag"),
        modified=text("d:getlastmodified"),
        size=int(size) if size.isdecimal() else None,
        content_type=text("d:getcontenttype").partition(";")[0].strip(),
        file_id=text("oc:fileid"),
    )


def _moment(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
