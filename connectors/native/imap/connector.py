"""A mailbox on any IMAP server.

A message's document is named by its folder and a digest of what never changes in it: UIDs mean nothing any more
when a folder's UIDVALIDITY changes, and a Message-ID alone can be forged to replace another message. The cursor
says of each folder up to where it was read (UIDNEXT) and how many messages were there. As UIDs only grow and
messages never change, fewer below that mark mean that some are gone, and the folder is listed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import quote

from pydantic import Field

from config.errors import RejectedError, TransientError
from connectors.base import (
    AuthMethod,
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
    Settings,
)
from connectors.native.imap.mailbox import Folder, FolderState, Mailbox, Security, Server
from connectors.native.imap.messages import summary_of
from connectors.patterns import is_wanted

_PAGE = 100  # messages whose headers are asked for at a time
_LEFT_OUT = frozenset({b"\\all", b"\\junk", b"\\trash", b"\\drafts"})  # unless they are asked for
_BARE = frozenset({b"\\noselect", b"\\nonexistent"})


class ImapConfig(Settings):
    """Which mailbox, and which of its messages."""

    host: str = Field(title="Server", description="Such as imap.example.com.", min_length=1)
    port: int | None = Field(
        default=None, ge=1, le=65535, title="Port", description="Empty: 993, or 143 without TLS."
    )
    security: Security = Field(
        default="tls",
        title="Security",
        description="None: only to servers that the operator has opened.",
    )
    include: list[str] = Field(
        default=[],
        title="Only these folders",
        description="Patterns such as INBOX or Projects/*; empty: all but junk, trash and drafts.",
    )
    exclude: list[str] = Field(
        default=[], title="Not these folders", description="Patterns such as Lists/*."
    )
    since: date | None = Field(
        default=None, title="Since", description="Messages received on this day or later."
    )


@dataclass(frozen=True, slots=True)
class _Position:
    """Up to where a folder was read. `partial`: not yet once from start to end; `missed`: and some of it could
    not be read."""

    validity: int
    next: int = 1
    count: int = 0  # wanted messages below `next`
    exists: int = 0
    modseq: int = 0
    partial: bool = True
    missed: bool = False

    @property
    def state(self) -> FolderState:
        """The folder when it was read."""
        return FolderState(self.validity, self.next, self.exists, self.modseq)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A folder that is being read. `positions`, by folder, go into each checkpoint."""

    box: Mailbox
    folder: Folder
    uids: Sequence[int]
    end: _Position  # when everything is read
    positions: dict[str, _Position]

    def at(self, position: _Position) -> Checkpoint:
        """Everything up to there is covered."""
        self.positions[self.folder.name] = position
        return _checkpoint(self.positions)


class ImapConnector(Connector[ImapConfig], Browsable):
    """Reads folder by folder, newest last. Nothing at the server changes: folders are opened for reading
    only, and messages stay unread."""

    places_field = "include"
    spec = ConnectorSpec(
        kind="imap",
        name="Mailbox (IMAP)",
        description="Messages of a mailbox on any IMAP server, with what is attached to them.",
        category=Category.MESSAGES,
        config=ImapConfig,
        auth=(
            AuthMethod(
                "basic", "User name and password", BasicCredentials,
                "Many providers ask for an app password here.",
            ),
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        documentation_url="https://www.rfc-editor.org/rfc/rfc9051",
    )  # fmt: skip

    def check(self) -> str:
        """The folders."""
        with self._connected() as box:
            return f"{self.config.host}: {len(self._folders(box))} folders"

    def browse(self, parent: str) -> list[Node]:
        """All folders; they are chosen by name."""
        with self._connected() as box:
            return [Node(folder.name, folder.name) for folder in self._folders(box)]

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """What is new in each folder, and anew what is in folders that have lost something."""
        stored = dict(cursor.get("folders", {}))
        positions = {name: _Position(**values) for name, values in stored.items()}
        with self._connected() as box:
            folders = self._folders(box)
            if positions and not folders:
                raise TransientError(f"{self.config.host} shows no folders.")
            for folder in folders:
                self.context.pause(0)
                yield from self._folder(box, folder, positions)
        for name in sorted(set(positions) - {folder.name for folder in folders}):
            del positions[name]
            yield Complete(name)  # the folder is gone with all that was in it
        yield _checkpoint(positions)

    def _folders(self, box: Mailbox) -> list[Folder]:
        include, exclude = self.config.include, self.config.exclude
        return [
            folder
            for folder in box.folders()
            if not folder.marks & _BARE
            and (include or not folder.marks & _LEFT_OUT)
            and is_wanted(folder.name.replace(folder.delimiter, "/"), include, exclude)
        ]

    def _folder(
        self, box: Mailbox, folder: Folder, positions: dict[str, _Position]
    ) -> Iterator[Event]:
        state = box.open(folder.name)
        start = _Position(state.validity)
        begun = positions.get(folder.name, start)
        if begun.validity != state.validity:
            begun = start
        elif begun.state == state and not begun.partial:
            return
        uids = box.uids(folder.name, state, self.config.since)
        end = _Position(count=len(uids), partial=False, **asdict(state))
        reading = _Reading(box, folder, uids, end, positions)
        older = sum(1 for uid in uids if uid < begun.next)
        if older != begun.count:  # some are gone
            begun, older = start, 0
        is_moved = 0 < begun.modseq < state.modseq
        flagged = box.changed(folder.name, begun.modseq) if is_moved else set()
        changed = [uid for uid in uids[:older] if uid in flagged]
        yield from self._messages(reading, [*changed, *uids[older:]], begun)

    def _messages(
        self, reading: _Reading, uids: Sequence[int], begun: _Position
    ) -> Iterator[Event]:
        """These messages, with a checkpoint after each page."""
        position = begun
        for start in range(0, len(uids), _PAGE):
            self.context.pause(0)
            page, missed = uids[start : start + _PAGE], position.missed
            for event in self._page(reading, page):
                missed = missed or isinstance(event, Failure)
                yield event
            above = sum(1 for uid in page if uid >= position.next)
            last, count = max(position.next, page[-1] + 1), position.count + above
            position = replace(position, next=last, count=count, missed=missed)
            yield reading.at(position)
        if begun.partial and not position.missed:
            yield Complete(reading.folder.name)
        # What could not be read makes the next run list the folder from the start.
        yield reading.at(_Position(begun.validity) if position.missed else reading.end)

    def _page(self, reading: _Reading, uids: Sequence[int]) -> Iterator[Event]:
        name = reading.folder.name
        try:
            answers = reading.box.headers(name, uids)
        except (RejectedError, TransientError):
            answers = {}
            for uid in uids:  # to find out which one it is; without a server this raises
                reading.box.connect()
                try:
                    answers |= reading.box.headers(name, [uid])
                except (RejectedError, TransientError) as error:
                    yield Failure(f"{name}#{uid}", error.message, name)
        for uid in sorted(answers):
            yield self._record(reading, uid, answers[uid])

    def _record(self, reading: _Reading, uid: int, facts: Mapping[bytes, Any]) -> Record:
        name, one = reading.folder.name, summary_of(facts)
        topic = [one.topic] if one.topic else []
        return Record(
            external_id=f"{name}#{one.digest}",
            title=one.subject or "(no subject)",
            body=File(
                partial(self._opened, reading.box, name, uid),
                f"{one.subject[:80] or 'message'}.eml", "message/rfc822", one.size,
            ),
            version=one.digest,  # a message never changes
            scope=name,
            url=f"mid:{quote(one.message_id, safe='@')}" if one.message_id else "",
            author=one.author,
            breadcrumbs=[*name.split(reading.folder.delimiter), *topic],
            created_at=one.moment,
            metadata={
                "folder": name, "from": one.sender, "to": one.recipients, "cc": one.copies,
                "thread": one.thread, "flags": one.flags,
            },
        )  # fmt: skip

    @contextmanager
    def _opened(self, box: Mailbox, folder: str, uid: int) -> Iterator[BinaryIO]:
        yield box.content(folder, uid, self.context.max_bytes)

    def _connected(self) -> Mailbox:
        assert isinstance(self.credentials, BasicCredentials)  # noqa: S101 - there is no other method
        server = Server(self.config.host, self.config.port, self.config.security)
        password = self.credentials.password.get_secret_value()
        return Mailbox(server, self.credentials.username, password)


def _checkpoint(positions: dict[str, _Position]) -> Checkpoint:
    return Checkpoint({"folders": {name: asdict(one) for name, one in positions.items()}})
