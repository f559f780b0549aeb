"""One channel: which stretch of it a run reads, and what documents that makes.

A channel's state in the cursor: `latest` is when it was last read, `until` how far back a first reading has come
(absent when that is done), `broken` that the run went on without finishing it, `recent` the documents of the days
that will be read again: one of them that is not met again is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, BinaryIO

from config.errors import (
    CredentialsError,
    RateLimitedError,
    RejectedError,
    TransientError,
)
from connectors.base import Complete, Deletion, Event, Failure, File, Record, Text
from connectors.native.slack.rendering import (
    Message,
    NameOf,
    author_of,
    is_said,
    last_change,
    moment_of,
    render_messages,
    title_of,
)
from connectors.native.slack.web_api import SlackApi, SlackError

DAY_S = 86_400

State = dict[str, Any]
Save = Callable[[State], Event]
# Of a document: its time, how its thread looked from the channel (or of which thread a file is), when it was read.
Recent = dict[str, tuple[float, str, float]]


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel and what reading it needs."""

    id: str
    name: str
    is_private: bool
    api: SlackApi
    name_of: NameOf
    workspace_url: str  # https://acme.slack.com/
    with_files: bool
    max_bytes: int
    reread_days: int

    @property
    def readers(self) -> frozenset[str]:
        """Who may read it: its members, or everyone."""
        return frozenset({f"group:{self.id}" if self.is_private else "public"})

    def permalink(self, ts: str) -> str:
        """A message's address."""
        return f"{self.workspace_url.rstrip('/')}/archives/{self.id}/p{ts.replace('.', '')}"

    def window_start(self, latest: float) -> float:
        """From when on messages are read again, if they were read up to `latest`."""
        return day_start(latest) - self.reread_days * DAY_S


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some days' messages; everything since `began` has been given."""

    messages: list[Message]
    began: float


@dataclass(frozen=True, slots=True)
class _Met:
    """A document that is there; without an event when it has surely not changed."""

    external_id: str
    ts: float
    looks: str
    read_at: float
    event: Record | Failure | None

    @property
    def memory(self) -> tuple[float, str, float]:
        """What is kept of it in the state."""
        return self.ts, self.looks, self.read_at


def read_first(
    channel: Channel, state: State | None, *, now: float, horizon: float, save: Save
) -> Iterator[Event]:
    """The whole channel from its newest day back to the horizon, with a checkpoint for each page; or what is
    left of it. Having read it whole, without a break over several runs, tells what is gone."""
    is_whole = not (state or {}).get("broken")
    state = state or {"latest": now, "until": now, "recent": {}}
    start = channel.window_start(state["latest"])
    for stretch in _stretches(channel, horizon, state["until"]):
        for met in _documents(channel, stretch.messages, {}, now):
            if met.event is not None:
                yield met.event
            if met.ts >= start:
                state["recent"][met.external_id] = met.memory
        state["until"] = stretch.began
        yield save(state)
    if is_whole:
        yield Complete(channel.id)
    yield save({"latest": state["latest"], "recent": state["recent"]})


def read_again(channel: Channel, state: State, *, now: float, save: Save) -> Iterator[Event]:
    """The last days, and older threads that have been answered to the channel."""
    start, known = channel.window_start(state["latest"]), state["recent"]
    recent: Recent = {}
    answered: set[str] = set()
    for stretch in _stretches(channel, start, now):
        for met in _documents(channel, stretch.messages, known, now):
            recent[met.external_id] = met.memory
            if met.event is not None:
                yield met.event
        threads = {str(one.get("thread_ts") or one["ts"]) for one in stretch.messages}
        answered |= {ts for ts in threads if float(ts) < start}
    for thread in sorted(answered):
        yield from (met.event for met in _thread(channel, thread, "", now) if met.event)
    for external_id, (ts, _, _) in known.items():
        if ts >= start and external_id not in recent:
            yield Deletion(external_id)
    kept_from = channel.window_start(now)
    kept = {external_id: memory for external_id, memory in recent.items() if memory[0] >= kept_from}
    yield save({"latest": now, "recent": kept})


def read_one(channel: Channel, name: str) -> Iterator[Event]:
    """A single thread, day or file, by the part of its external id behind the channel's."""
    wanted = f"{channel.id}:{name}"
    try:
        found = list(_found(channel, name))
    except SlackError as error:
        is_gone = error.reason in {"file_not_found", "file_deleted", "thread_not_found"}
        yield Deletion(wanted) if is_gone else Failure(wanted, error.message, channel.id)
        return
    yield from (met.event for met in found if met.event and met.external_id == wanted)


def _found(channel: Channel, name: str) -> Iterator[_Met]:
    if name.startswith("F"):
        file = channel.api.call("files.info", file=name)["file"]
        ts = f"{file.get('created', 0)}.000000"
        message = {"user": file.get("user"), "ts": ts, "files": [file]}
        yield from _files(channel, message, float(ts), "", 0.0)
    elif "-" in name:
        start = datetime.fromisoformat(name).replace(tzinfo=UTC).timestamp()
        for stretch in _stretches(channel, start, start + DAY_S):
            yield from _documents(channel, stretch.messages, {}, 0.0)
    else:
        yield from _thread(channel, name, "", 0.0)


def _stretches(channel: Channel, oldest: float, latest: float) -> Iterator[_Stretch]:
    """Whole days, the newest first: the last day of a page may go on on the next one."""
    pending: list[Message] = []
    # `oldest` and `latest` are exclusive, and midnight belongs to its day.
    span = {"oldest": f"{max(oldest - 1e-6, 0):.6f}", "latest": f"{latest:.6f}"}
    for page in channel.api.pages("conversations.history", "messages", channel=channel.id, **span):
        pending += page
        if not pending:
            continue
        edge = day_start(min(float(one["ts"]) for one in pending)) + DAY_S
        done = [one for one in pending if float(one["ts"]) >= edge]
        if done:
            yield _Stretch(done, edge)
        pending = [one for one in pending if float(one["ts"]) < edge]
    yield _Stretch(pending, oldest)


def _documents(
    channel: Channel, messages: list[Message], known: Recent, now: float
) -> Iterator[_Met]:
    days: dict[float, list[Message]] = {}
    for message in messages:
        ts = str(message["ts"])
        if message.get("reply_count"):
            same = _unchanged(f"{channel.id}:{ts}", _looks_of(message), known, now)
            yield from same or _thread(channel, ts, _looks_of(message), now)
        elif message.get("thread_ts", ts) == ts and is_said(message):
            days.setdefault(day_start(float(ts)), []).append(message)
    for start, said in days.items():
        record = _day(channel, start, said)
        yield _Met(record.external_id, start, "", now, record)
        for message in said:
            yield from _files(channel, message, float(message["ts"]), "", now)


def _looks_of(message: Message) -> str:
    """What a channel's history tells of a thread: all but edits of its replies."""
    facts = (message.get(key) for key in ("reply_count", "latest_reply", "text", "edited"))
    return hashlib.sha256(repr(list(facts)).encode("utf-8", "replace")).hexdigest()[:16]


def _unchanged(external_id: str, looks: str, known: Recent, now: float) -> list[_Met]:
    """A thread and its files, if it looks as it did and was read within a day; else nothing."""
    ts, before, read_at = known.get(external_id, (0.0, "", 0.0))
    if before != looks or now - read_at >= DAY_S:
        return []
    files = [
        _Met(name, *memory, None) for name, memory in known.items() if memory[1] == external_id
    ]
    return [_Met(external_id, ts, looks, read_at, None), *files]


def _day(channel: Channel, start: float, messages: list[Message]) -> Record:
    date = f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d}"
    first = min(messages, key=lambda one: float(one["ts"]))
    return _record(channel, f"{channel.id}:{date}", f"#{channel.name} {date}", messages, first)


def _thread(channel: Channel, ts: str, looks: str, now: float) -> Iterator[_Met]:
    external_id = f"{channel.id}:{ts}"
    try:
        pages = channel.api.pages("conversations.replies", "messages", channel=channel.id, ts=ts)
        messages: list[Message] = [message for page in pages for message in page]
    except (CredentialsError, RateLimitedError, TransientError):
        raise
    except RejectedError as error:
        failure = Failure(external_id, error.message, channel.id)
        yield _Met(external_id, float(ts), "", now, failure)
        return
    said = [one for one in messages if is_said(one)]
    if not said:
        return
    title = f"#{channel.name}: {title_of(said[0], channel.name_of)}"
    record = _record(channel, external_id, title, said, said[0])
    yield _Met(external_id, float(ts), looks, now, record)
    for message in said:
        yield from _files(channel, message, float(ts), external_id, now)


def _record(
    channel: Channel, external_id: str, title: str, messages: list[Message], first: Message
) -> Record:
    people = dict.fromkeys(author_of(one, channel.name_of) for one in messages)
    return Record(
        external_id=external_id,
        title=title,
        body=Text(render_messages(messages, channel.name_of)),
        scope=channel.id,
        url=channel.permalink(str(first["ts"])),
        author=author_of(first, channel.name_of),
        breadcrumbs=(f"#{channel.name}",),
        created_at=moment_of(str(first["ts"])),
        updated_at=last_change(messages),
        metadata={
            "channel": channel.name,
            "channel_id": channel.id,
            "private": channel.is_private,
            "messages": len(messages),
            "participants": list(people)[:50],
        },
        principals=channel.readers,
    )


def _files(
    channel: Channel, message: Message, ts: float, thread: str, now: float
) -> Iterator[_Met]:
    for file in message.get("files") or () if channel.with_files else ():
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if file.get("is_external") or not channel.api.may_have_token(url):
            continue
        kind = str(file.get("mimetype") or "")
        record = Record(
            external_id=f"{channel.id}:{file['id']}",
            title=str(file.get("title") or file.get("name") or file["id"]),
            body=File(
                partial(_downloaded, channel, url, kind),
                str(file.get("name") or file["id"]),
                kind,
                file.get("size"),
            ),
            version=str(file.get("timestamp") or file["id"]),
            scope=channel.id,
            url=str(file.get("permalink") or ""),
            author=author_of(message, channel.name_of),
            breadcrumbs=(f"#{channel.name}",),
            created_at=moment_of(str(message["ts"])),
            metadata={
                "channel": channel.name,
                "channel_id": channel.id,
                "private": channel.is_private,
            },
            principals=channel.readers,
        )
        yield _Met(record.external_id, ts, thread, now, record)


@contextmanager
def _downloaded(channel: Channel, url: str, kind: str) -> Iterator[BinaryIO]:
    with channel.api.http.download(url, max_bytes=channel.max_bytes) as file:
        # Without the scope Slack answers 200 with its sign-in page.
        if "html" not in kind and file.read(15).lower().startswith(b"<!doctype html"):
            raise RejectedError(
                "Slack gave its sign-in page: the token lacks the scope files:read."
            )
        file.seek(0)
        yield file


def day_start(ts: float) -> float:
    """Midnight before a moment, in UTC."""
    return ts - ts % DAY_S
