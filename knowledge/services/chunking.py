"""Packs the blocks of an extracted text into chunks: the passages that are searched and cited.

No character is lost but custom separators and white space between passages, and a passage is the text
itself: `content == text[start:end]`. Only a passage that starts inside a table differs: it repeats the
table's header before that slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from config.errors import FieldError, InvalidInputError
from knowledge.extraction.base import BlockKind, Extracted
from knowledge.services.packing import Draft, Packer
from knowledge.services.sections import (
    HeadingStack,
    Section,
    split_at_separator,
    split_sections,
    whole_section,
)
from knowledge.services.splitting import Splitter
from providers.base import Tokenizer

MIN_SIZE = 32
MAX_SIZE = 8_192


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """How a knowledge base cuts its documents; sizes are in tokens of its embedding model."""

    size: int = 256
    overlap: int = 32
    separator: str = ""

    def __post_init__(self) -> None:
        """Raise `InvalidInputError` naming the size and the overlap, as each bounds the other."""
        if MIN_SIZE <= self.size <= MAX_SIZE and 0 <= self.overlap < self.size / 2:
            return
        rule = (
            f"The chunk size must be from {MIN_SIZE} to {MAX_SIZE:,} tokens and the overlap at least 0 "
            f"and less than half the size; got size {self.size} and overlap {self.overlap}."
        )
        raise InvalidInputError(
            rule,
            [
                FieldError("settings.chunk_size", f"From {MIN_SIZE} to {MAX_SIZE:,} tokens."),
                FieldError("settings.chunk_overlap", "From 0 to less than half the chunk size."),
            ],
        )


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A passage to be stored: its text, its place in the document, its headings, its tokens."""

    ordinal: int
    content: str
    start: int
    end: int
    heading_path: tuple[str, ...]
    page: int | None
    sheet: str | None
    row: int | None
    line: int | None
    token_count: int


def chunk_text(
    extracted: Extracted, options: ChunkingOptions, tokenizer: Tokenizer, context: str
) -> list[ChunkDraft]:
    """Cut a text into passages. `context` is what is embedded before each, heading path aside."""
    splitter = Splitter(extracted.text, tokenizer)
    allowed = tokenizer.max_tokens - splitter.count([context])[0]
    budget = _Budget(splitter, options.size, max(allowed, tokenizer.max_tokens // 4))
    packer = Packer(extracted.text, splitter, options.overlap)
    drafts: list[Draft] = []
    for section in _sections(extracted, options, budget, splitter):
        room = budget.room(section)
        drafts += packer.pack(section, room)
    return _numbered(extracted.text, packer.fitted(drafts))


class _Budget:
    """The tokens a passage may have when it is embedded together with its headings."""

    def __init__(self, splitter: Splitter, size: int, allowed: int) -> None:
        self._splitter = splitter
        self._size = size
        self._allowed = allowed
        self._known: dict[tuple[str, ...], tuple[tuple[str, ...], int]] = {(): ((), 0)}

    def room(self, section: Section) -> int:
        """The tokens left for text; outer headings go when the path takes more than a quarter."""
        if section.path not in self._known:
            self._known[section.path] = self._shortened(section.path)
        section.path, cost = self._known[section.path]
        return min(self._size, self._allowed - cost)

    def _shortened(self, path: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        while path:
            cost = self._splitter.count([" › ".join(("", *path, "\n"))])[0]
            if cost <= self._allowed // 4:
                return path, cost
            path = path[1:]
        return (), 0


def _sections(
    extracted: Extracted, options: ChunkingOptions, budget: _Budget, splitter: Splitter
) -> Iterator[Section]:
    """The sections of the text, or the parts between separators where they fit into a passage."""
    headings = HeadingStack()
    if not options.separator.strip(" "):
        paths = [headings.path_after(block, extracted.text) for block in extracted.blocks]
        yield from split_sections(extracted.blocks, paths)
        return
    for part in split_at_separator(extracted, options.separator):
        paths = [headings.path_after(block, extracted.text) for block in part]
        whole = whole_section(part, paths)
        body = extracted.text[part[0].start : part[-1].end]
        if _fits(body, part[0].table_header, budget.room(whole), splitter):
            yield whole
        else:
            yield from split_sections(part, paths)


def _fits(body: str, header: str, room: int, splitter: Splitter) -> bool:
    return len(body) <= 20 * room and splitter.count([f"{header}\n{body}"])[0] <= room


def _numbered(text: str, drafts: Sequence[Draft]) -> list[ChunkDraft]:
    lines = _LineCounter(text)
    return [
        ChunkDraft(
            ordinal=ordinal,
            content=draft.content(text),
            start=draft.start,
            end=draft.end,
            heading_path=draft.section.path,
            page=draft.section.page,
            sheet=draft.section.sheet,
            row=draft.block.row,
            line=lines.line_of(draft),
            token_count=draft.tokens,
        )
        for ordinal, draft in enumerate(drafts)
    ]


class _LineCounter:
    """The source line a passage starts at, counted on from the line of its block."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._block_start = -1
        self._place = 0
        self._passed = 0

    def line_of(self, draft: Draft) -> int | None:
        block = draft.block
        if block.line is None or block.kind in {BlockKind.TABLE_ROW, BlockKind.TABLE_HEADER}:
            return block.line
        if block.start != self._block_start:
            self._block_start = self._place = block.start
            self._passed = 0
        self._passed += self._text.count("\n", self._place, draft.start)
        self._place = max(self._place, draft.start)
        return block.line + self._passed
