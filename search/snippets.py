"""The part of a passage that shows why it was found, with the matching words marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from knowledge.lexical.analyzer import highlight_spans

WIDTH = 280


def make_snippet(content: str, terms: Collection[str], languages: Sequence[str]) -> str:
    """HTML-escaped text of about `WIDTH` characters around the densest matches, in `<mark>`s."""
    spans = highlight_spans(content, terms, languages)
    start = _best_start(content, spans)
    end = min(len(content), start + WIDTH)
    parts, position = ["… " if start else ""], start
    for left, right in spans:
        if left < start or right > end:
            continue
        parts += [escape(content[position:left]), "<mark>", escape(content[left:right]), "</mark>"]
        position = right
    parts += [escape(content[position:end]), " …" if end < len(content) else ""]
    return " ".join("".join(parts).split())


def _best_start(content: str, spans: Sequence[tuple[int, int]]) -> int:
    """Where a window of `WIDTH` covers most distinct matched words, a little before the first of them."""
    best, best_start, right = 0, 0, 0
    for left, (begin, _) in enumerate(spans):
        while right < len(spans) and spans[right][1] <= begin + WIDTH - WIDTH // 5:
            right += 1
        distinct = len({content[a:b].casefold() for a, b in spans[left : max(right, left + 1)]})
        if distinct > best:
            best, best_start = distinct, max(0, begin - WIDTH // 5)
    while (
        best_start > 0 and content[best_start - 1].isalnum() and content[best_start - 1].isascii()
    ):
        best_start -= 1
    return min(best_start, max(0, len(content) - WIDTH)) if best_start else 0
