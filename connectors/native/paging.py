"""Following a source's pages to their end, and no further."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from config.errors import RejectedError

_MOST_PAGES = 20_000

Item = TypeVar("Item")
Page = tuple[list[Item], str]


def follow_pages(
    fetch: Callable[[str], Page[Item]], *, start: str = "", most_pages: int = _MOST_PAGES
) -> Iterator[list[Item]]:
    """What `fetch` gives for each cursor, from the first (empty) on until it gives an empty next one. Stops
    after `most_pages`; raises `RejectedError` when the source leads in a circle."""
    cursor, seen = start, {start}
    for _ in range(most_pages):
        items, cursor = fetch(cursor)
        yield items
        if not cursor:
            return
        if cursor in seen:
            raise RejectedError("The source gives the same page again and again.")
        seen.add(cursor)
