"""Headings of light markup that is otherwise read as plain text: Org, reStructuredText, AsciiDoc."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_ORG = re.compile(r"(\*+) +(?:(?:TODO|DONE) +)?(\S.*?)(?: +:[\w@:]+:)?\s*")
_ASCIIDOC = re.compile(r"(={1,6}) +(\S.*?)(?: +=+)?\s*")
_UNDERLINE = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}\s*")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading found in lines of text: how many lines it takes, its level and words."""

    lines: int
    level: int
    text: str


# Finds the headings of a text: index of the first line → heading.
Finder = Callable[[Sequence[str]], Mapping[int, Heading]]


def org_headings(lines: Sequence[str]) -> dict[int, Heading]:
    """`* Heading`, `** Heading`."""
    return _marked(lines, _ORG)


def asciidoc_headings(lines: Sequence[str]) -> dict[int, Heading]:
    """`= Title`, `== Section`."""
    return _marked(lines, _ASCIIDOC)


def rst_headings(lines: Sequence[str]) -> dict[int, Heading]:
    """Lines with a rule under them, maybe over them too; the rule first seen is the highest."""
    found: dict[int, Heading] = {}
    styles: list[tuple[str, bool]] = []
    index = end = 0  # `end` is where the last heading ended: another may follow at once
    while index < len(lines):
        apart = index == end or not lines[index - 1].strip()
        heading, style = _rst_heading(lines, index) if apart else (None, ("", False))
        if heading is None:
            index += 1
            continue
        if style not in styles:
            styles.append(style)
        found[index] = Heading(heading.lines, min(styles.index(style) + 1, 6), heading.text)
        index = end = index + heading.lines
    return found


def _marked(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[int, Heading]:
    matches = ((index, pattern.fullmatch(line)) for index, line in enumerate(lines))
    return {index: Heading(1, min(len(match[1]), 6), match[2]) for index, match in matches if match}


def _rst_heading(lines: Sequence[str], index: int) -> tuple[Heading | None, tuple[str, bool]]:
    over = _UNDERLINE.fullmatch(lines[index])
    title_at = index + 1 if over else index
    if title_at + 1 >= len(lines):
        return None, ("", False)
    title, under = lines[title_at].rstrip(), _UNDERLINE.fullmatch(lines[title_at + 1])
    fits = under is not None and len(under[0].rstrip()) >= len(title.strip()) > 0
    if under is None or not fits or _UNDERLINE.fullmatch(title):
        return None, ("", False)
    if over and over[1] != under[1]:
        return None, ("", False)
    if not over and title[0].isspace():
        return None, ("", False)
    return Heading(3 if over else 2, 1, title.strip()), (under[1], bool(over))


FINDERS: Mapping[str, Finder] = {
    ".org": org_headings,
    ".rst": rst_headings,
    ".adoc": asciidoc_headings,
    ".asciidoc": asciidoc_headings,
}
