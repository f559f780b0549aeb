"""Plain text: paragraphs with their line numbers. Also reads logs, subtitles, Org and reST as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import ClassVar

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import Decoded, decode
from knowledge.extraction.outlines import FINDERS, Finder
from knowledge.extraction.subtitles import Passage, iter_passages

# A log has no empty lines; pieces keep the line numbers of citations close.
_MOST_LINES = 100
_SUBTITLES = frozenset({".srt", ".vtt"})


class TextExtractor(Extractor):
    """Any text without a structure of its own, and the fallback for broken structured text."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"text/plain", "text/x-rst", "text/x-org"})
    suffixes: ClassVar[frozenset[str]] = frozenset(
        [
            ".txt",
            ".text",
            ".log",
            ".org",
            ".rst",
            ".srt",
            ".vtt",
            ".adoc",
            ".asciidoc",
            ".tex",
            ".bib",
            ".nfo",
            ".ics",
            ".vcf",
            ".diff",
            ".patch",
        ]
    )

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        suffix = PurePath(source.filename).suffix.lower()
        if suffix in _SUBTITLES:
            passages = list(iter_passages(decoded.text))
            if passages:
                return _extract_passages(passages, decoded, limits)
        if suffix in FINDERS:
            return _extract_outlined(decoded, FINDERS[suffix], limits)
        return extract_plain(decoded.text, limits, warnings=decoded.warnings)


def extract_plain(text: str, limits: Limits, *, warnings: tuple[str, ...] = ()) -> Extracted:
    """Text as paragraphs; `warnings` say why a structured format ended up here."""
    builder = TextBuilder(limits)
    for warning in warnings:
        builder.warn(warning)
    count = add_paragraphs(builder, text)
    return builder.finish(Coverage("lines", count, count))


def _extract_outlined(decoded: Decoded, find: Finder, limits: Limits) -> Extracted:
    """Text whose headings are marked: the paragraphs between them keep their line numbers."""
    builder = TextBuilder(limits)
    for warning in decoded.warnings:
        builder.warn(warning)
    lines = decoded.text.split("\n")
    headings = find(lines)
    count = place = 0
    for index, heading in sorted(headings.items()):
        count += add_paragraphs(builder, "\n".join(lines[place:index]), first_line=place + 1)
        builder.heading(heading.text, heading.level, line=index + 1)
        count += 1
        place = index + heading.lines
    count += add_paragraphs(builder, "\n".join(lines[place:]), first_line=place + 1)
    title = next((heading.text for _, heading in sorted(headings.items())), "")
    return builder.finish(Coverage("lines", count, count), title=title)


def _extract_passages(passages: Sequence[Passage], decoded: Decoded, limits: Limits) -> Extracted:
    builder = TextBuilder(limits)
    for warning in decoded.warnings:
        builder.warn(warning)
    for passage in passages:
        builder.paragraph(f"[{passage.start}] {passage.text}", line=passage.line)
    return builder.finish(Coverage("paragraphs", len(passages), len(passages)))


def add_paragraphs(builder: TextBuilder, text: str, *, first_line: int | None = 1) -> int:
    """Adds the paragraphs of `text`; gives the number of lines that hold something.

    `first_line` is the number of its first line in the file, None when there is no such number.
    """
    filled = 0
    for line, paragraph in _iter_paragraphs(text):
        builder.paragraph("\n".join(paragraph), line=first_line and first_line + line - 1)
        filled += len(paragraph)
    return filled


def _iter_paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of filled lines, each with the number of its first line."""
    start, run = 0, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if run and (not line.strip() or len(run) >= _MOST_LINES):
            yield start, run
            run = []
        if line.strip():
            start = start if run else number
            run.append(line)
    if run:
        yield start, run
