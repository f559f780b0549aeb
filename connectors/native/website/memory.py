"""What was seen of each page, kept between runs beside the database.

It lets a server answer "not modified", and an interrupted crawl go on without asking again. Where it is lost,
pages are asked for anew; nothing else depends on it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_TABLE = (
    "CREATE TABLE IF NOT EXISTS page (url TEXT PRIMARY KEY, crawl TEXT, seen TEXT) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A page as it was answered last. Without a `version` it is no document, but has links."""

    links: tuple[str, ...] = ()
    version: str = ""
    title: str = ""
    filename: str = ""
    content_type: str = ""
    modified_at: str = ""  # ISO 8601
    etag: str = ""
    last_modified: str = ""

    @property
    def conditions(self) -> dict[str, str]:
        """Headers that ask for the page only if it is another."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value}


class Memory:
    """The pages of one connection."""

    def __init__(self, rows: sqlite3.Connection) -> None:
        self._rows = rows

    def recall(self, url: str) -> Seen | None:
        """What was seen of a page, in whichever crawl."""
        row = self._rows.execute("SELECT seen FROM page WHERE url = ?", (url,)).fetchone()
        return _read(row[0]) if row else None

    def recall_of(self, url: str, crawl: str) -> Seen | None:
        """What was seen of a page in this crawl."""
        row = self._rows.execute(
            "SELECT seen FROM page WHERE url = ? AND crawl = ?", (url, crawl)
        ).fetchone()
        return _read(row[0]) if row else None

    def remember(self, url: str, crawl: str, seen: Seen) -> None:
        """Replace what is known of a page."""
        row = (url, crawl, json.dumps(asdict(seen), ensure_ascii=False))
        self._rows.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?)", row)

    def forget(self, url: str) -> None:
        """Know nothing of a page."""
        self._rows.execute("DELETE FROM page WHERE url = ?", (url,))

    def forget_others(self, crawl: str) -> None:
        """Keep the pages of one crawl only."""
        self._rows.execute("DELETE FROM page WHERE crawl <> ?", (crawl,))


@contextmanager
def opened_memory(folder: Path) -> Iterator[Memory]:
    """The memory in a folder; an unreadable one is replaced."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "pages.sqlite3"
    try:
        rows = _opened(path)
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        rows = _opened(path)
    with closing(rows):
        yield Memory(rows)


def _opened(path: Path) -> sqlite3.Connection:
    # Written by one run at a time, but perhaps made by one thread and closed by another.
    rows = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    try:
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("PRAGMA synchronous = OFF")
        rows.execute(_TABLE)
    except sqlite3.DatabaseError:
        rows.close()
        raise
    return rows


def _read(text: str) -> Seen:
    values = json.loads(text)
    return Seen(**{**values, "links": tuple(values["links"])})
