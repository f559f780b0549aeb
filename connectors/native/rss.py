"""Feeds: RSS, Atom and JSON Feed.

A feed is a window on the newest entries: what leaves it is not taken for deleted. The cursor holds what each
feed's server gave to ask for changes only.
"""

from __future__ import annotations

import io
import json
from calendar import timegm
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote, urljoin, urlsplit

import feedparser  # type: ignore[import-untyped]  # it comes without types
from django.utils.dateparse import parse_datetime
from pydantic import Field

from config.errors import InvalidInputError, RateLimitedError, RejectedError, RemoteError
from config.http import HttpClient
from connectors.base import (
    NO_AUTH,
    Capability,
    Category,
    Checkpoint,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    File,
    Notice,
    Record,
    Settings,
    Text,
    basic_auth,
    token_auth,
)

_ACCEPT = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"
_HTML = frozenset({"text/html", "application/xhtml+xml"})


class RssConfig(Settings):
    """Which feeds, and how much of their entries."""

    feeds: list[str] = Field(
        min_length=1, max_length=200, title="Feeds", description="Addresses of RSS, Atom or JSON feeds."
    )  # fmt: skip
    full_pages: bool = Field(
        default=False,
        title="Whole pages",
        description="Read the page that an entry links to instead of what the feed says of it.",
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """What a feed says of one thing, whatever its format."""

    id: str
    title: str
    link: str
    text: str
    content_type: str
    author: str
    created_at: datetime | None
    updated_at: datetime | None
    tags: tuple[str, ...]
    enclosures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed, read. `is_sound` is false for one that is broken off or malformed."""

    title: str
    entries: list[Entry]
    is_sound: bool = True


class RssConnector(Connector[RssConfig]):
    """Entries are known by their feed and the id they have in it."""

    spec = ConnectorSpec(
        kind="rss",
        name="RSS and Atom feeds",
        description="News, blogs and podcasts by their feeds.",
        category=Category.WEB,
        config=RssConfig,
        auth=(NO_AUTH, basic_auth(), token_auth()),
        capabilities=frozenset({Capability.INCREMENTAL}),
        sync_every_minutes=60,
    )

    def check(self) -> str:
        """The titles of the feeds; each must be readable."""
        client = self.context.client()
        return ", ".join(self._read(client, url, {})[0].title or url for url in self.config.feeds)

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """The entries of each feed that has changed. One that cannot be read does not keep back the others."""
        client = self.context.client()
        known: dict[str, Any] = {
            url: seen for url, seen in cursor.get("feeds", {}).items() if url in self.config.feeds
        }
        errors = []
        for url in self.config.feeds:
            try:
                feed, seen = self._read(client, url, known.get(url, {}))
            except RateLimitedError:
                raise
            except RemoteError as error:
                errors.append(error)
                if len(errors) == len(self.config.feeds):
                    raise
                yield Notice(f"The feed {url} was not read. {error.message}")
                continue
            for entry in feed.entries:
                yield self._record(url, feed, entry)
            known = {**known, url: seen}
            yield Checkpoint({"feeds": known})

    def _read(
        self, client: HttpClient, url: str, seen: Mapping[str, str]
    ) -> tuple[Feed, dict[str, str]]:
        """A feed, empty when it is as it was, and what to ask with the next time."""
        if urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidInputError(f"{url[:200]!r} is no address of a feed.")
        conditions = {
            "If-None-Match": seen.get("etag", ""),
            "If-Modified-Since": seen.get("modified", ""),
        }
        headers = {name: value for name, value in conditions.items() if value}
        response = client.request("GET", url, headers={"Accept": _ACCEPT, **headers})
        if response.status_code == 304:
            return Feed("", []), dict(seen)
        kind, place = response.headers.get("Content-Type", ""), str(response.url)
        feed = parse_feed(response.content, kind, place)
        if not feed.is_sound:  # it may be whole the next time
            return feed, {}
        given = {
            "etag": response.headers.get("ETag", "")[:500],
            "modified": response.headers.get("Last-Modified", "")[:100],
        }
        return feed, {name: value for name, value in given.items() if value}

    def _record(self, url: str, feed: Feed, entry: Entry) -> Record:
        body: Text | File = Text(entry.text or entry.title, entry.content_type)
        version = ""
        if self.config.full_pages and urlsplit(entry.link).scheme in {"http", "https"}:
            body = File(partial(self._page, entry.link), _filename(entry.link))
            moment = entry.updated_at or entry.created_at
            facts = f"{entry.link}\n{moment}\n{entry.title}\n{entry.text}"
            version = sha256(facts.encode(errors="replace")).hexdigest()
        metadata = {"feed": url, "tags": list(entry.tags), "enclosures": list(entry.enclosures)}
        return Record(
            external_id=f"{url} {entry.id}",
            title=entry.title or entry.link or feed.title,
            body=body,
            version=version,
            url=entry.link,
            author=entry.author,
            breadcrumbs=(feed.title,) if feed.title else (),
            created_at=entry.created_at,
            updated_at=entry.updated_at or entry.created_at,
            metadata={name: value for name, value in metadata.items() if value},
        )

    def _page(self, link: str) -> AbstractContextManager[BinaryIO]:
        """The linked page. The credentials are for the feeds, not for where they lead."""
        client = self.context.client(auth=None)
        return client.download(link, max_bytes=self.context.max_bytes)


def parse_feed(content: bytes, content_type: str, url: str) -> Feed:
    """A feed in any format. Raises `RejectedError` for what is none."""
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _json_feed(content, url)
    headers = {"content-type": content_type, "content-location": url}
    parsed = feedparser.parse(io.BytesIO(content), response_headers=headers)
    if not parsed.entries and not parsed.get("version"):
        raise RejectedError("There is no feed at this address.")
    entries = [_entry(one) for one in parsed.entries]
    # A charset named wrongly harms nothing; anything else may have cost entries.
    complaint = parsed.get("bozo_exception")
    is_sound = not parsed.bozo or isinstance(complaint, feedparser.CharacterEncodingOverride)
    return Feed(parsed.feed.get("title", ""), entries, is_sound)


def _entry(one: Any) -> Entry:
    bodies = [*one.get("content", []), one.get("summary_detail") or {}]
    text, kind = "", "text/html"
    for body in bodies:
        if str(body.get("value", "")).strip():
            text, kind = body["value"], body.get("type", kind)
            break
    link, title = one.get("link", ""), one.get("title", "")
    return Entry(
        id=one.get("id") or link or _digest(title, text),
        title=title,
        link=link,
        text=text,
        content_type="text/html" if kind in _HTML else "text/plain",
        author=one.get("author", ""),
        created_at=_moment(one.get("published_parsed")),
        # Its own `get` gives the time of publication where there is no other.
        updated_at=_moment(dict.get(one, "updated_parsed")),
        tags=tuple(tag.term for tag in one.get("tags", []) if tag.get("term")),
        enclosures=tuple(file.href for file in one.get("enclosures", []) if file.get("href")),
    )


def _json_feed(content: bytes, url: str) -> Feed:
    """https://www.jsonfeed.org/version/1.1/, which feedparser does not read."""
    try:
        given = json.loads(content)
        if "jsonfeed.org" not in given["version"]:
            raise RejectedError("There is no feed at this address.")
        items = [item for item in given.get("items", []) if isinstance(item, dict)]
    except (ValueError, KeyError, TypeError) as error:
        raise RejectedError("There is no feed at this address.") from error
    return Feed(str(given.get("title", "")), [_json_entry(item, url) for item in items])


def _json_entry(item: Mapping[str, Any], url: str) -> Entry:
    markup = item.get("content_html")
    text = str(markup or item.get("content_text") or item.get("summary") or "")
    link = urljoin(url, str(item.get("url") or item.get("external_url") or ""))
    title = str(item.get("title") or "")
    people = [*(item.get("authors") or []), item.get("author") or {}]
    names = [one["name"] for one in people if isinstance(one, dict) and one.get("name")]
    files = [one for one in item.get("attachments") or [] if isinstance(one, dict)]
    return Entry(
        id=str(item.get("id") or link or _digest(title, text)),
        title=title,
        link=link,
        text=text,
        content_type="text/html" if markup else "text/plain",
        author=", ".join(dict.fromkeys(names)),
        created_at=_iso(item.get("date_published")),
        updated_at=_iso(item.get("date_modified")),
        tags=tuple(str(tag) for tag in item.get("tags") or []),
        enclosures=tuple(str(file["url"]) for file in files if file.get("url")),
    )


def _moment(parsed: Any) -> datetime | None:
    """feedparser gives times in UTC, whatever the feed has, and impossible ones now and then."""
    try:
        return datetime.fromtimestamp(timegm(parsed), UTC) if parsed else None
    except (ValueError, OverflowError, TypeError):
        return None


def _iso(text: Any) -> datetime | None:
    try:
        return parse_datetime(str(text)) if text else None
    except ValueError:
        return None


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode(errors="replace")).hexdigest()


def _filename(link: str) -> str:
    name = PurePosixPath(unquote(urlsplit(link).path)).name
    return name if PurePosixPath(name).suffix else f"{name or 'page'}.html"
