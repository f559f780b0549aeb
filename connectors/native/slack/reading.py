"""One channel: which stretch of it a run reads, and what documents that makes.

A channel's state in the cursor: `latest` is when it was last read, `until` how far back a first reading has come
(absent when that is done), `broken` that it was broken off and the run went on without it, `recent` the documents of the days that will be read again, with their times: one of
them that is not met again is gone.
"""

from __future__ import annotations

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
from connectors.native.slack.web_api import SlackApi

DAY_S = 86_400

State = dict[str, Any]
Save = Callable[[State], Event]
_Dated = tuple[float, Record | Failure]


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


def read_first(
    channel: Channel, state: State | None, *, now: float, horizon: float, save: Save
) -> Iterator[Event]:
    """The whole channel from its newest day back to the horizon, with a checkpoint for each page; or what is
    left of it. Having read it whole, without a break over several runs, tells what is gone."""
    is_whole = not (state or {}).get("broken")
    state = state or {"latest": now, "until": now, "recent": {}}
    start = channel.window_start(state["latest"])
    for stretch in _stretches(channel, horizon, state["until"]):
        for ts, event in _documents(channel, stretch.messages):
            yield event
            if ts >= start:
                state["recent"][event.external_id] = ts
        state["until"] = stretch.began
        yield save(state)
    if is_whole:
        yield Complete(channel.id)
    yield save({"latest": state["latest"], "recent": state["recent"]})


def read_again(channel: Channel, state: State, *, now: float, save: Save) -> Iterator[Event]:
    """The last days, and older threads that have been answered to the channel."""
    start = channel.window_start(state["latest"])
    met: dict[str, float] = {}
    answered: set[str] = set()
    for stretch in _stretches(channel, start, now):
        for ts, event in _documents(channel, stretch.messages):
            met[event.external_id] = ts
            yield event
        threads = {str(one.get("thread_ts") or one["ts"]) for one in stretch.messages}
        answered |= {ts for ts in threads if float(ts) < start}
    for thread in sorted(answered):
        yield from (event for _, event in _thread(channel, thread))
    for external_id, moment in state["recent"].items():
        if moment >= start and external_id not in met:
            yield Deletion(external_id)
    kept_from = channel.window_start(now)
    recent = {external_id: ts for external_id, ts in met.items() if ts >= kept_from}
    yield save({"latest": now, "recent": recent})


def read_one(channel: Channel, name: str) -> Iterator[Event]:
    """A single thread or day, by the part of its external id behind the channel's."""
    if "-" not in name:
        yield from (
            event for _, event in _thread(channel, name) if event.external_id.endswith(name)
        )
        return
    start = datetime.fromisoformat(name).replace(tzinfo=UTC).timestamp()
    wanted = f"{channel.id}:{name}"
    for stretch in _stretches(channel, start, start + DAY_S):
        for _, event in _documents(channel, stretch.messages):
            if event.external_id == wanted:
                yield event


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


def _documents(channel: Channel, messages: list[Message]) -> Iterator[_Dated]:
    days: dict[float, list[Message]] = {}
    for message in messages:
        ts = str(message["ts"])
        if message.get("reply_count"):
            yield from _thread(channel, ts)
        elif message.get("thread_ts", ts) == ts and is_said(message):
            days.setdefault(day_start(float(ts)), []).append(message)
    for start, said in days.items():
        yield start, _day(channel, start, said)
        for message in said:
            yield from _files(channel, message, float(message["ts"]))


def _day(channel: Channel, start: float, messages: list[Message]) -> Record:
    date = f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d}"
    first = min(messages, key=lambda one: float(one["ts"]))
    return _record(channel, f"{channel.id}:{date}", f"#{channel.name} {date}", messages, first)


def _thread(channel: Channel, ts: str) -> Iterator[_Dated]:
    external_id = f"{channel.id}:{ts}"
    try:
        pages = channel.api.pages("conversations.replies", "messages", channel=channel.id, ts=ts)
        messages: list[Message] = [message for page in pages for message in page]
    except (CredentialsError, RateLimitedError, TransientError):
        raise
    except RejectedError as error:
        yield float(ts), Failure(external_id, error.message, channel.id)
        return
    said = [one for one in messages if is_said(one)]
    if not said:
        return
    title = f"#{channel.name}: {title_of(said[0], channel.name_of)}"
    yield float(ts), _record(channel, external_id, title, said, said[0])
    for message in said:
        yield from _files(channel, message, float(ts))


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


def _files(channel: Channel, message: Message, ts: float) -> Iterator[_Dated]:
    for file in message.get("files") or () if channel.with_files else ():
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if file.get("is_external") or not channel.api.may_have_token(url):
            continue
        kind = str(file.get("mimetype") or "")
        yield (
            ts,
            Record(
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
            ),
        )


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
