"""Lines of text of one PDF page, from PDFium's characters and their places on the page.

PDFium's own text glues or splits words where letters are spaced out or drawn twice to look bold,
and drops what its fonts give no width. Its characters with their boxes are good, so words are put
together here.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c
import regex

# PDFium's sign for a hyphen that ends a line; `layout` decides whether the word had one.
HYPHEN = "\x02"
_GUESS = "\x00"  # a blank PDFium saw in a gap
_HYPHEN_CODES = frozenset({0x02, 0xFFFE})
_NOTHING = frozenset({0x00, 0x0D})
_LINE_END = 0x0A
# A page with more is a plotted drawing: its text is taken as it comes, without places.
_MAX_PLACED_CHARS = 200_000
_MAX_CHECKED_OBJECTS = 5_000
# Presentation forms carry shape, not meaning: ﬁ → fi, ﻧ → ن.
_PRESENTATION_FORMS = regex.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufdcf\ufdf0-\ufdfc\ufe70-\ufefc]"
)
# The bullets of Symbol and Wingdings, which have no Unicode place of their own.
_SYMBOL_BULLETS = str.maketrans(dict.fromkeys("\uf0b7\uf0a7\uf0d8\uf0a8\uf076\uf0fc\uf02d", "•"))
_RIGHT_TO_LEFT = regex.compile(r"[\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}]")
_LATIN_BEFORE_ARABIC = regex.compile(r"(?<=[A-Za-z0-9])(?=[\p{Hebrew}\p{Arabic}])")
_LETTER = regex.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line as drawn, in reading coordinates: x to the right, y upwards, whatever its rotation."""

    text: str
    left: float
    right: float
    y: float
    size: float
    is_tabular: bool = False


class _Char(NamedTuple):  # there are millions: a tuple is made three times faster than a dataclass
    text: str
    left: float
    right: float
    bottom: float
    top: float


def read_lines(page: pdfium.PdfPage) -> list[Line]:
    """The lines of a page in the order they are drawn. Raises `PdfiumError` for a broken page."""
    _turn_flat_text(page)
    textpage = page.get_textpage()
    count = textpage.count_chars()
    if count > _MAX_PLACED_CHARS:
        text = str(textpage.get_text_range())
        return [
            Line(part, 0, 1, -row, 1, is_tabular=True) for row, part in enumerate(text.splitlines())
        ]
    lines: list[Line] = []
    seen: dict[str, list[Line]] = {}
    for chars, middle in _raw_lines(textpage, count):
        line = _line(chars, _font_size(textpage, middle))
        twins = seen.setdefault(line.text, [])
        # A shadow or an outline is the same text again, a hair aside.
        if line.text.strip() and not any(_is_same_place(line, twin) for twin in twins):
            twins.append(line)
            lines.append(line)
    return lines


def _turn_flat_text(page: pdfium.PdfPage) -> None:
    """Turn the text of a page whose vertical fonts are not embedded, or PDFium finds none.

    It skips text objects without width, and vertical writing in a font it does not have is such a
    one. Turned by 90 degrees its columns are lines in the right order.
    """
    if pdfium_c.FPDFPage_CountObjects(page) > _MAX_CHECKED_OBJECTS:
        return
    texts = list(page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_TEXT], max_depth=3))
    flat = 0
    for text in texts:
        left, bottom, right, top = text.get_bounds()
        flat += right - left < 0.01 and top - bottom > 1
    if flat and flat * 2 > len(texts):
        for text in texts:
            text.transform(pdfium.PdfMatrix(0, 1, -1, 0, 0, 0))


def _raw_lines(textpage: pdfium.PdfTextPage, count: int) -> Iterator[tuple[list[_Char], int]]:
    """Runs of characters up to a line end, with the index of a visible one in the middle of each."""
    box = pdfium_c.FS_RECTF()
    chars: list[_Char] = []
    solid: list[int] = []
    for index in range(count):
        code = pdfium_c.FPDFText_GetUnicode(textpage, index)
        if code in _NOTHING:
            continue
        is_hyphen = code in _HYPHEN_CODES
        if code != _LINE_END:
            pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box)
            text = HYPHEN if is_hyphen else chr(code)
            chars.append(_Char(text, box.left, box.right, box.bottom, box.top))
            if not text.isspace():
                solid.append(index)
        if chars and (is_hyphen or code == _LINE_END):
            yield chars, solid[len(solid) // 2] if solid else index
            chars, solid = [], []
    if chars:
        yield chars, solid[len(solid) // 2] if solid else count - 1


def _font_size(textpage: pdfium.PdfTextPage, index: int) -> float:
    matrix = pdfium_c.FS_MATRIX()
    if not pdfium_c.FPDFText_GetMatrix(textpage, index, matrix):
        return 0.0
    size = pdfium_c.FPDFText_GetFontSize(textpage, index)
    return float(size) * math.hypot(matrix.c, matrix.d)


def _line(chars: list[_Char], size: float) -> Line:
    chars = _upright(chars)
    solid = [char for char in chars if not char.text.isspace()] or chars
    height = max(char.top - char.bottom for char in solid)
    size = size if size > 0.5 else max(height, 1.0)
    text, is_tabular = _words(_ligatures_in_order(_without_twins(chars)), size)
    return Line(
        text=_readable(text),
        left=min(char.left for char in solid),
        right=max(char.right for char in solid),
        y=statistics.median_low([char.bottom for char in solid]),
        size=size,
        is_tabular=is_tabular,
    )


def _upright(chars: list[_Char]) -> list[_Char]:
    """The boxes turned so that the line reads from left to right."""
    across = chars[-1].left - chars[0].left
    up = chars[-1].bottom - chars[0].bottom
    if len(chars) < 3 or abs(up) <= 2 * abs(across):
        return chars
    if up > 0:
        return [_Char(char.text, char.bottom, char.top, -char.right, -char.left) for char in chars]
    return [_Char(char.text, -char.top, -char.bottom, char.left, char.right) for char in chars]


def _without_twins(chars: Sequence[_Char]) -> list[_Char]:
    """Without the second print of a letter drawn twice to look bold."""
    kept: list[_Char] = []
    last: _Char | None = None
    for char in chars:
        if (
            last is not None
            and last.text == char.text
            and abs(last.left - char.left) < 0.3 * (char.right - char.left)
            and abs(last.bottom - char.bottom) < 0.1 * (char.top - char.bottom)
            and not _is_same_box(last, char)  # the two letters of ﬀ share its box
        ):
            continue
        kept.append(char)
        if not char.text.isspace():
            last = char
    return kept


def _ligatures_in_order(chars: list[_Char]) -> list[_Char]:
    """Letters of one right-to-left ligature share a box, and PDFium gives them back to front."""
    if not any(_RIGHT_TO_LEFT.match(char.text) for char in chars if char.text > "\u0590"):
        return chars
    ordered: list[_Char] = []
    group: list[_Char] = []
    for char in chars:
        if group and not (_RIGHT_TO_LEFT.match(char.text) and _is_same_box(group[-1], char)):
            ordered += reversed(group)
            group = []
        group.append(char)
    return ordered + group[::-1]


def _words(chars: Sequence[_Char], size: float) -> tuple[str, bool]:
    """The text with the blanks that are seen, and whether wide gaps set it in columns."""
    gaps: list[tuple[str, float]] = []
    solid: list[str] = []
    previous: _Char | None = None
    blank = ""
    for char in chars:
        if char.text.isspace():
            # PDFium's own guess of a blank has no width; a blank of the font has.
            blank = char.text if char.right - char.left > 0 else blank or _GUESS
            continue
        gap = 0.0
        if previous is not None:
            # In either writing direction.
            gap = max(char.left - previous.right, previous.left - char.right)
        gaps.append((blank, gap))
        solid.append(char.text)
        previous, blank = char, ""
    if not solid:
        return "", False
    tracking = _tracking(solid, [gap for given, gap in gaps[1:] if given in {"", _GUESS}], size)
    needed = tracking + (0.2 if tracking else 0.04) * size
    parts = []
    for letter, (given, gap) in zip(solid, gaps, strict=True):
        is_guess = given == _GUESS
        seen = (" " if gap > needed else "") if is_guess else given
        parts.append(seen + letter)
    text = "".join(parts)
    # Where writing directions mix, neighbours in the text stand apart on the page.
    is_tabular = max(gap for _, gap in gaps) > 1.5 * size and not _RIGHT_TO_LEFT.search(text)
    return text, is_tabular


def _tracking(solid: Sequence[str], gaps: Sequence[float], size: float) -> float:
    """How far a line of spaced letters is spaced; 0 for an ordinary line."""
    if len(gaps) < 6:
        return 0.0
    median = statistics.median(gaps)
    if not 0.08 * size < median < 0.4 * size:
        return 0.0
    letters = sum(1 for text in solid if _LETTER.match(text))
    return median if letters >= 0.8 * len(solid) else 0.0


def _readable(text: str) -> str:
    text = text.translate(_SYMBOL_BULLETS)
    text = _PRESENTATION_FORMS.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    if any("\ud800" <= char <= "\udfff" for char in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _LATIN_BEFORE_ARABIC.sub(" ", text).strip(" \t\u00a0")


def _is_same_box(one: _Char, other: _Char) -> bool:
    return abs(one.left - other.left) < 0.01 and abs(one.right - other.right) < 0.01


def _is_same_place(one: Line, other: Line) -> bool:
    nearness = 0.3 * one.size
    return abs(one.left - other.left) < nearness and abs(one.y - other.y) < nearness
