"""Paragraphs and headings out of the lines of a PDF, which knows neither."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from knowledge.extraction.pdf.pages import HYPHEN, Line

_BULLET = regex.compile(r"^[•‣▪▫◦●○■□➢➤✓✔\uf0b7·–—*-]\s+(?=\S)")
_NUMBERED = regex.compile(r"^\(?(?:\d{1,2}|\p{Ll})[.)]\s")
_SENTENCE_END = regex.compile(r"[.!?:;。！？：؟]['\"”’)\]]*$")
_NO_BLANK_BETWEEN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]")
_WORD = regex.compile(r"[\p{L}\p{M}]+(?:-[\p{L}\p{M}]+)*")
_LAST_WORD = regex.compile(r"[\p{L}\p{M}-]+$")
_FIRST_WORD = regex.compile(r"^[\p{L}\p{M}-]+")
_MAX_HEADING_CHARS = 200
_HEADING_RATIO = 1.15


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together. `is_item` says that a bullet stood before the text."""

    lines: tuple[Line, ...]
    is_item: bool = False

    @property
    def size(self) -> float:
        """The font size, rounded as sizes of one style differ by a hair."""
        return round(self.lines[0].size * 2) / 2

    @property
    def length(self) -> int:
        """How many characters the lines hold."""
        return sum(len(line.text) for line in self.lines)


def split_paragraphs(lines: Sequence[Line]) -> list[Paragraph]:
    """Group the lines of a page by line gap, font size, indentation and bullets."""
    pitch = _usual_pitch(lines)
    paragraphs: list[list[Line]] = []
    for line in lines:
        if paragraphs and not _starts_paragraph(line, paragraphs[-1], pitch):
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return [_paragraph(group) for group in paragraphs]


def heading_levels(paragraphs: Iterable[Paragraph]) -> Mapping[float, int]:
    """The font sizes that mark headings, larger than most of the text, with their levels."""
    groups = list(paragraphs)
    chars: Counter[float] = Counter()
    for group in groups:
        chars[group.size] += group.length
    if not chars:
        return {}
    body = max(chars, key=lambda size: chars[size])
    sizes = {
        group.size
        for group in groups
        if group.size >= body * _HEADING_RATIO and is_heading_like(group)
    }
    return {size: min(rank, 6) for rank, size in enumerate(sorted(sizes, reverse=True), start=1)}


def is_heading_like(paragraph: Paragraph) -> bool:
    """Whether the text could be a heading: short, with letters, and no table row."""
    return (
        paragraph.length <= _MAX_HEADING_CHARS
        and len(paragraph.lines) <= 3
        and not paragraph.is_item
        and any(char.isalpha() for line in paragraph.lines for char in line.text)
    )


class LineJoiner:
    """Joins lines to running text. It learns the words of the document to judge hyphens by."""

    def __init__(self, pages: Iterable[Sequence[Line]]) -> None:
        self._words: set[str] = set()
        for lines in pages:
            for line in lines:
                self._words.update(_WORD.findall(line.text.casefold()))

    def text(self, paragraph: Paragraph) -> str:
        """The text of a paragraph; lines that do not fill it stay lines."""
        width = max(line.right - line.left for line in paragraph.lines)
        text = paragraph.lines[0].text
        for line, following in pairwise(paragraph.lines):
            if text.endswith(HYPHEN):
                text = self._join_hyphen(text[:-1], following.text)
            else:
                text += _separator(line, following, width) + following.text
        return text.replace(HYPHEN, "-")

    def _join_hyphen(self, text: str, following: str) -> str:
        left, right = _LAST_WORD.search(text), _FIRST_WORD.search(following)
        if left is None or right is None or not right[0][0].islower():
            return f"{text}-{following}"
        if (left[0] + right[0]).casefold() in self._words:
            return text + following
        if f"{left[0]}-{right[0]}".casefold() in self._words or "-" in left[0]:
            return f"{text}-{following}"
        return text + following


def _usual_pitch(lines: Sequence[Line]) -> float:
    """The line distance over font size that most neighbouring lines of the page have."""
    ratios = [
        (line.y - following.y) / line.size
        for line, following in pairwise(lines)
        if 0.7 * line.size < line.y - following.y < 3 * line.size
    ]
    return statistics.median(ratios) if len(ratios) >= 4 else 1.4


def _starts_paragraph(line: Line, group: Sequence[Line], pitch: float) -> bool:
    last = group[-1]
    if last.text.endswith(HYPHEN) or _is_same_row(last, line):
        return False
    down = last.y - line.y
    if _BULLET.match(line.text) or down < 0 or down > 1.3 * pitch * max(last.size, line.size):
        return True
    if not 0.88 < line.size / last.size < 1.13:
        return True
    return _ends_paragraph(last, line, group)


def _ends_paragraph(last: Line, line: Line, group: Sequence[Line]) -> bool:
    """Whether a sentence ends at `last` and an indent or a short line shows that the text does too."""
    if not _SENTENCE_END.search(last.text) or last.is_tabular:
        return False
    width = max(other.right - other.left for other in group)
    is_short = last.right - last.left < 0.85 * max(width, line.right - line.left)
    is_indented = line.left - min(other.left for other in group) > 0.8 * line.size
    return is_short or is_indented


def _paragraph(group: list[Line]) -> Paragraph:
    first = group[0]
    text = _BULLET.sub("", first.text)
    if text == first.text:
        return Paragraph(tuple(group))
    item = Line(text, first.left, first.right, first.y, first.size, first.is_tabular)
    return Paragraph((item, *group[1:]), is_item=True)


def _separator(line: Line, following: Line, width: float) -> str:
    if _is_same_row(line, following):
        return " "
    if _NUMBERED.match(following.text):
        return "\n"
    is_full = line.right - line.left >= 0.75 * width
    if not is_full or line.is_tabular or following.is_tabular or _is_numeric(following.text):
        return "\n"
    if _NO_BLANK_BETWEEN.match(line.text[-1]) and _NO_BLANK_BETWEEN.match(following.text[0]):
        return ""
    return " "


def _is_same_row(line: Line, other: Line) -> bool:
    """Whether one goes on beside the other: a cell, an exponent, an index."""
    return abs(line.y - other.y) <= 0.5 * max(line.size, other.size)


def _is_numeric(text: str) -> bool:
    """Whether the line is a row of figures rather than a sentence."""
    digits = sum(char.isdigit() for char in text)
    return digits > 0.3 * len(text)
