"""One way through a site: what is asked for, in which order, and what is made of the answers."""

from __future__ import annotations

import io
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

import requests

from config.errors import CredentialsError, RejectedError, TransientError
from connectors.base import (
    Checkpoint,
    Complete,
    Context,
    Cursor,
    Deletion,
    Event,
    Failure,
    File,
    Notice,
    Record,
)
from connectors.native.website.addresses import Site, one_spelling, shape
from connectors.native.website.memory import Memory, Seen
from connectors.native.website.pages import as_utf8, charset_of, read_page
from connectors.native.website.robots import Robots, pages_of_sitemaps
from connectors.native.website.settings import WebsiteConfig
from connectors.patterns import is_wanted

ANSWERS = frozenset(range(400, 500)) - {408, 425, 429}  # that are the server's last word
_GONE = frozenset({404, 410})
_MOVED, _MOVED_FOR_GOOD = frozenset({301, 302, 303, 307, 308}), frozenset({301, 308})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PAGE = 25
_MOST_BYTES = 16 * 1024 * 1024  # of contents that wait to be stored
_MOST_FAILING = 5  # in a row: the site is down
_MOST_OF_A_SHAPE = 500  # addresses that differ by numbers only, as those of a calendar
# Not asked for: they hold no text, or are parts of pages.
_PARTS = re.compile(
    r"\.(?:css|m?js|map|json|xml|rss|atom|ico|png|jpe?g|gif|webp|avif|svg|bmp|tiff?|mp[34]|m4[av]|webm|og[gv]|wav"
    r"|flac|mov|avi|mkv|woff2?|ttf|otf|eot|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|msi|iso|apk|deb|rpm|jar|whl)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Look:
    """What an address was good for. `is_sure` says whether its links are those of now."""

    event: Record | Failure | None = None
    links: tuple[str, ...] = ()
    is_sure: bool = True
    is_read: bool = True
    is_move: bool = False


@dataclass
class Crawl:
    """The state of one crawl; `name` is the same for its continuation."""

    config: WebsiteConfig
    context: Context
    memory: Memory
    name: str
    failing: int = 0
    waiting_bytes: int = 0
    is_sure: bool = True  # every page was met
    is_cut: bool = False  # by our own limits
    _queue: deque[tuple[str, int]] = field(default_factory=deque)
    _known: set[str] = field(default_factory=set)
    _shapes: Counter[str] = field(default_factory=Counter)
    _robots: dict[str, Robots] = field(default_factory=dict)
    _next_at: float = 0.0

    def __post_init__(self) -> None:
        self._client = self.context.client(follow_redirects=False)
        self._starts = [one_spelling(url) for url in self.config.start_urls]
        self._site = Site.of(self._starts, self.config.path_prefixes)

    # --- the way through the site --------------------------------------------------------------

    def events(self, position: Cursor) -> Iterator[Event]:
        """All pages. What a site no longer has is known only when every page could be read."""
        yield from self._begin()
        gone: list[str] = []
        read = 0
        for number in range(1, self.config.max_pages + 1):
            if not self._queue:
                break
            url, depth = self._queue.popleft()
            look = self.look(url)
            read += look.is_read
            self.is_sure &= look.is_sure
            for link in look.links:
                self._enqueue(link, depth if look.is_move else depth + 1)
            if look.event is None:
                gone.append(url)
            else:
                yield look.event
            if number % _PAGE == 0 or self.waiting_bytes > _MOST_BYTES:
                self.waiting_bytes = 0
                yield Checkpoint(position)
        if not read:
            raise RejectedError("None of the start addresses could be read.")
        yield from self._end(gone)

    def _begin(self) -> Iterator[Event]:
        for url in self._starts:
            self._known.add(url)
            if self._robots_of(url).allows(url):
                self._queue.append((url, 0))
            else:
                self.is_sure = False
                yield Notice(f"robots.txt does not allow {url}.")
        if not self.config.use_sitemaps:
            return
        named = [one_spelling(url) for url in self.config.sitemaps]
        sitemaps = named or [
            url for robots in list(self._robots.values()) for url in robots.sitemaps
        ]
        try:
            for url in pages_of_sitemaps(sitemaps, self._ask_for_list, self.config.max_pages):
                self._enqueue(url, 1, is_named=True)
        except (TransientError, RejectedError) as error:
            self.is_sure = False
            yield Notice(f"A sitemap could not be read. {error.message}")

    def _end(self, gone: list[str]) -> Iterator[Event]:
        if self.is_cut:
            yield Notice(
                f"Not all pages were read: there are more than {self.config.max_pages}, or too many that "
                "differ by numbers only. Only pages that answered so are taken for deleted."
            )
        if self.is_sure and self.is_cut:
            yield from (Deletion(url) for url in gone)
        elif self.is_sure:
            yield Complete()
            self.memory.forget_others(self.name)
        yield Checkpoint({})

    def _enqueue(self, url: str, depth: int, *, is_named: bool = False) -> None:
        url = self._site.upgraded(url)
        if not url or url in self._known or depth > self.config.max_depth or not self.may_ask(url):
            return
        if len(self._known) >= self.config.max_pages:
            self.is_cut = True
            return
        kind = shape(url)
        if not is_named and self._shapes[kind] >= _MOST_OF_A_SHAPE:
            self.is_cut = True
            return
        self._shapes[kind] += 1
        self._known.add(url)
        self._queue.append((url, depth))

    def may_ask(self, url: str) -> bool:
        """Whether a page belongs to what is read, and may be."""
        path = urlsplit(url).path
        return (
            self._site.has(url)
            and not _PARTS.search(path)
            and is_wanted(unquote(path), [], self.config.exclude)
            and self._robots_of(url).allows(url)
        )

    # --- one page ------------------------------------------------------------------------------

    def look(self, url: str) -> Look:
        """Ask for a page, unless this crawl has done so before it was interrupted."""
        if seen := self.memory.recall_of(url, self.name):
            return self._look_of(url, seen, None)
        known = self.memory.recall(url)
        try:
            response = self._ask(url, known.conditions if known else {})
            self.failing = 0
        except TransientError as error:
            self.failing += 1
            if self.failing >= _MOST_FAILING:
                raise
            return self._failed(url, error.message, known, is_sure=False)
        except RejectedError as error:
            return self._failed(url, error.message, known, is_sure=known is None)
        return self._answered(url, response, known)

    def _answered(self, url: str, response: requests.Response, known: Seen | None) -> Look:
        status = response.status_code
        if status == 304 and known:
            self.memory.remember(url, self.name, known)
            return self._look_of(url, known, None)
        if status in _MOVED:
            return self._moved(url, response, known)
        if status in _GONE:
            self.memory.forget(url)
            return Look(is_sure=url not in self._starts, is_read=False)
        if status == 401 and url in self._starts:
            raise CredentialsError(f"{urlsplit(url).hostname} asks for credentials (401).")
        if status != 200:
            is_sure = known is None and url not in self._starts
            return self._failed(url, f"The server answered {status}.", known, is_sure=is_sure)
        seen, content = self._seen(url, response, known)
        self.memory.remember(url, self.name, seen)
        return self._look_of(url, seen, content)

    def _moved(self, url: str, response: requests.Response, known: Seen | None) -> Look:
        target = one_spelling(response.headers.get("Location", ""), url)
        is_inside = self._site.has_host(target)
        for_good = response.status_code in _MOVED_FOR_GOOD
        if (known and known.version and not for_good) or (url in self._starts and not is_inside):
            # Perhaps a form to sign in, or a page that begs for patience.
            where = urlsplit(target).hostname or "nowhere"
            return self._failed(url, f"The page leads to {where} now.", known, is_sure=False)
        if for_good:
            self.memory.forget(url)
        return Look(links=(target,) if is_inside else (), is_read=False, is_move=True)

    def _failed(self, url: str, message: str, known: Seen | None, *, is_sure: bool) -> Look:
        links = known.links if known else ()
        return Look(Failure(url, message), links, is_sure=is_sure, is_read=False)

    def _seen(
        self, url: str, response: requests.Response, known: Seen | None
    ) -> tuple[Seen, bytes]:
        headers, content = response.headers, response.content
        kind = headers.get("Content-Type", "").split(";")[0].strip().lower()
        tags = headers.get("X-Robots-Tag", "").rpartition(":")[2]
        links: tuple[str, ...] = ()
        if kind in _HTML or (not kind and b"<html" in content[:2048].lower()):
            page = read_page(url, content, charset_of(response), tags)
            content, kind = as_utf8(content, charset_of(response)), "text/html"
            links, title, version = page.links, page.title, page.digest
            may_index = page.may_index
            if (
                page.canonical
                and not _is_same(page.canonical, url)
                and self.may_ask(page.canonical)
            ):
                links, may_index = (page.canonical, *links), False
        else:
            title, version = "", sha256(content).hexdigest()
            may_index = self.config.files and "noindex" not in tags and "none" not in tags
        if not may_index or not content.strip():
            version = ""
        changed = known is None or known.version != version
        modified = (
            _moment(headers.get("Last-Modified", ""))
            if changed or known is None
            else known.modified_at
        )
        return Seen(
            links, version, title, _filename(url, kind), kind, modified,
            headers.get("ETag", ""), headers.get("Last-Modified", ""),
        ), content  # fmt: skip

    def _look_of(self, url: str, seen: Seen, content: bytes | None) -> Look:
        parts = urlsplit(url)
        if not seen.version or not is_wanted(unquote(parts.path), self.config.include, []):
            return Look(links=seen.links)
        steps = [unquote(step) for step in parts.path.split("/") if step]
        body: Callable[[], AbstractContextManager[BinaryIO]] = partial(self._asked_again, url)
        if content is not None:
            body = partial(io.BytesIO, content)
            self.waiting_bytes += len(content)
        record = Record(
            external_id=url,
            title=seen.title or seen.filename,
            body=File(body, seen.filename, seen.content_type),
            version=seen.version,
            url=url,
            breadcrumbs=(parts.netloc, *steps[:-1]),
            updated_at=datetime.fromisoformat(seen.modified_at) if seen.modified_at else None,
        )
        return Look(record, seen.links)

    # --- asking --------------------------------------------------------------------------------

    @contextmanager
    def _asked_again(self, url: str) -> Iterator[BinaryIO]:
        """The content of a page that was not sent because it is known, but is not stored."""
        response = self._ask(url, {})
        if response.status_code != 200:
            raise RejectedError(f"The server answered {response.status_code}.")
        yield io.BytesIO(as_utf8(response.content, charset_of(response)))

    def _ask(self, url: str, headers: dict[str, str]) -> requests.Response:
        """A polite request: never sooner than the site and the settings want it."""
        self.context.pause(max(self._next_at - time.monotonic(), 0.0))
        delay_s = max(1 / self.config.requests_per_second, self._robots_of(url).delay_s)
        self._next_at = time.monotonic() + delay_s
        return self._client.request("GET", url, headers=headers, expected=ANSWERS)

    def _ask_for_list(self, url: str) -> requests.Response:
        """robots.txt or a sitemap, wherever it has moved to."""
        return self.context.client().request("GET", url, expected=ANSWERS)

    def _robots_of(self, url: str) -> Robots:
        host = urlsplit(url).netloc.removeprefix("www.")
        if host not in self._robots:
            self._robots[host] = Robots(url, self._ask_for_list)
        return self._robots[host]


def _is_same(one: str, other: str) -> bool:
    """Whether two addresses differ in what servers redirect from one to the other only."""
    first, second = (urlsplit(url) for url in (one, other))
    return (
        first.netloc.removeprefix("www.") == second.netloc.removeprefix("www.")
        and first.path.rstrip("/") == second.path.rstrip("/")
        and first.query == second.query
    )


def _filename(url: str, kind: str) -> str:
    name = PurePosixPath(unquote(urlsplit(url).path)).name or "index"
    if kind in _HTML and not re.search(r"\.x?html?$", name, re.IGNORECASE):
        return f"{name}.html"
    return name


def _moment(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except (TypeError, ValueError):
        return ""
