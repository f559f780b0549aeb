"""Plain text: paragraphs with their line numbers. Also reads logs, subtitles, Org and reST as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import decode

# A log has no empty lines; pieces keep the line numbers of citations close.
_MOST_LINES = 100


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
        return extract_plain(decoded.text, limits, warnings=decoded.warnings)


def extract_plain(text: str, limits: Limits, *, warnings: tuple[str, ...] = ()) -> Extracted:
    """Text as paragraphs; `warnings` say why a structured format ended up here."""
    builder = TextBuilder(limits)
    for warning in warnings:
        builder.warn(warning)
    count = add_paragraphs(builder, text)
    return builder.finish(Coverage("lines", count, count))


def add_paragraphs(builder: TextBuilder, text: str, *, numbered: bool = True) -> int:
    """Adds the paragraphs of `text`; gives the number of lines that hold something."""
    filled = 0
    for line, paragraph in _iter_paragraphs(text):
        builder.paragraph("\n".join(paragraph), line=line if numbered else None)
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
