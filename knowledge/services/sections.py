"""What belongs together in a text: the body under a heading, a page, a part between separators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import regex

from knowledge.extraction.base import Block, BlockKind, Extracted

_MAX_HEADING_CHARS = 200
_NOT_BLANK = regex.compile(r"\S")


@dataclass(slots=True)
class Section:
    """Blocks that may share a chunk, and the headings they stand under."""

    path: tuple[str, ...] = ()
    blocks: list[Block] = field(default_factory=list)
    page: int | None = None
    sheet: str | None = None
    has_body: bool = False

    def add(self, block: Block, path: tuple[str, ...]) -> None:
        """Take a block in; the path is that of the first body."""
        self.blocks.append(block)
        if not self.has_body:
            self.path = path
        self.has_body = self.has_body or block.kind is not BlockKind.HEADING
        self.page = block.page if self.page is None else self.page
        self.sheet = block.sheet if self.sheet is None else self.sheet

    def ends_before(self, block: Block) -> bool:
        """Whether a block opens a new section.

        A passage is cited by one heading path and one page, so it crosses neither, however short: a
        slide or a section of two lines is a passage of its own. Headings in a row stay together.
        """
        if not self.blocks:
            return False
        if block.kind is BlockKind.HEADING and self.has_body:
            return True
        turned = None not in {block.page, self.page} and block.page != self.page
        return turned or (None not in {block.sheet, self.sheet} and block.sheet != self.sheet)


class HeadingStack:
    """The headings in force while the blocks of a text go by."""

    def __init__(self) -> None:
        self._levels: list[tuple[int, str]] = []

    def path_after(self, block: Block, text: str) -> tuple[str, ...]:
        """The heading path that holds for the block, itself included when it is a heading."""
        if block.kind is BlockKind.HEADING:
            while self._levels and self._levels[-1][0] >= block.level:
                self._levels.pop()
            title = text[block.start : block.end].strip()[:_MAX_HEADING_CHARS]
            self._levels.append((block.level, title))
        return tuple(title for _, title in self._levels)


def split_sections(blocks: Sequence[Block], paths: Sequence[tuple[str, ...]]) -> Iterator[Section]:
    """Sections in order; together they hold every block."""
    section = Section()
    for block, path in zip(blocks, paths, strict=True):
        if section.ends_before(block):
            yield section
            section = Section()
        section.add(block, path)
    if section.blocks:
        yield section


def whole_section(blocks: Sequence[Block], paths: Sequence[tuple[str, ...]]) -> Section:
    """One section of all the blocks, under the headings that hold for all of them."""
    section = Section()
    for block, path in zip(blocks, paths, strict=True):
        section.add(block, path)
    bodies = [
        path
        for block, path in zip(blocks, paths, strict=True)
        if block.kind is not BlockKind.HEADING
    ]
    section.path = _common_path(bodies or paths)
    return section


def split_at_separator(extracted: Extracted, separator: str) -> Iterator[list[Block]]:
    """The blocks of each part between separators. A block across a separator is cut there."""
    text = extracted.text
    part: list[Block] = []
    cuts = _separator_pattern(separator).finditer(text)
    cut = next(cuts, None)
    for block in extracted.blocks:
        rest = block
        while cut is not None and cut.start() < block.end:
            part += _head(rest, cut.start(), text)
            if part:
                yield part
            part, rest = [], _rest(rest, cut.end(), text)
            if cut.end() > block.end:
                break  # it reaches into the next block as well
            cut = next(cuts, None)
        part += _head(rest, rest.end, text)
    if part:
        yield part


def _head(block: Block, end: int, text: str) -> list[Block]:
    """The block up to `end`, without blanks there; nothing if that is nothing."""
    if end >= block.end:
        return [block] if block.start < block.end else []
    body = text[block.start : end].rstrip()
    return [replace(block, end=block.start + len(body))] if body else []


def _rest(block: Block, start: int, text: str) -> Block:
    """The block from `start` on, without blanks there; it may be empty."""
    if start <= block.start:
        return block
    filled = _NOT_BLANK.search(text, start, block.end)
    start = filled.start() if filled else block.end
    line = block.line and block.line + text.count("\n", block.start, start)
    return replace(block, start=start, line=line)


def _common_path(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    common = paths[0]
    for path in paths[1:]:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(common, path, strict=False))
        common = tuple(title for title, _ in same)
    return common


def _separator_pattern(separator: str) -> regex.Pattern[str]:
    """The separator as it may stand in extracted text, where blank lines come and go."""
    core = separator.strip("\n")
    if not core:
        return regex.compile(rf"\n{{{len(separator)},}}")
    before = r"(?<![^\n])[^\S\n]*" if separator.startswith("\n") else ""
    after = r"[^\S\n]*(?![^\n])" if separator.endswith("\n") else ""
    inner = r"\n+".join(regex.escape(line) for line in core.split("\n") if line)
    return regex.compile(before + inner + after)
