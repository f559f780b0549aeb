"""Whether a chunk is the passage that a golden query wants, also after the document was cut anew."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from knowledge.models import Chunk

_SHARE = 0.5  # of the shorter one of quote and chunk
_LEAST_COMMON = 12  # characters that changed texts must have in common
_LEAST_SHARE = 0.125  # of the quote: a heading alone is not the passage


@dataclass(frozen=True, slots=True)
class Passage:
    """A quote and the text of its document. A chunk of that document is the passage when

    1. it contains the quote, white space and character widths aside; or else
    2. the quote stands in the document's text and the chunk covers half of it, or lies by half inside
       it, by character offsets. Where the passage was cut in two either half counts; and a
       like-sounding passage elsewhere in the document does not; or else
    3. the quote stands there no longer (the text was changed, or the chunk by hand) and the longest
       part that both have in common is half of the quote, and some words long.
    """

    quote: str
    text: str
    _places: tuple[tuple[int, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", _find_places(self.quote, self.text))

    def is_in(self, chunk: Chunk) -> bool:
        """Whether the chunk, which is of the document, is the passage."""
        if self.is_quoted_from(chunk):
            return True
        if self._places and chunk.edited_at is None:
            return False
        quote, content = normalize(self.quote), normalize(chunk.content)
        matcher = SequenceMatcher(None, quote, content, autojunk=False)
        return matcher.find_longest_match().size >= max(_SHARE * len(quote), _LEAST_COMMON)

    def is_quoted_from(self, chunk: Chunk) -> bool:
        """Whether the quote stands in the chunk as it is, or half of it where it was cut in two."""
        if normalize(self.quote) in normalize(chunk.content):
            return True
        return chunk.edited_at is None and any(
            _overlaps(chunk.start, chunk.end, *place) for place in self._places
        )


def normalize(text: str) -> str:
    """Text for comparing: no white space (Chinese has none to begin with), compatible characters as one."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _find_places(quote: str, text: str) -> tuple[tuple[int, int], ...]:
    signs = "".join(quote.split())
    if not signs:
        return ()
    pattern = re.compile(r"\s*".join(re.escape(sign) for sign in signs))
    return tuple(found.span() for found in pattern.finditer(text))


def _overlaps(start: int, end: int, first: int, stop: int) -> bool:
    shared = min(end, stop) - max(start, first)
    wanted, chunk = stop - first, end - start
    return shared >= _SHARE * min(wanted, chunk) and shared >= _LEAST_SHARE * wanted
