"""Source code: verbatim, cut where functions and classes begin, with line numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import decode

_MOST_LINES = 60  # a piece is cut at any empty line when it is longer
_HARD_LIMIT = 200  # and anywhere beyond this
_CLOSERS = frozenset("}])")


class CodeExtractor(Extractor):
    """Programs, scripts and configuration of common languages."""

    mime_types: ClassVar[frozenset[str]] = frozenset(
        {"text/x-python", "text/x-c", "text/javascript", "application/javascript", "text/x-java"}
    )
    suffixes: ClassVar[frozenset[str]] = frozenset(
        [
            ".py",
            ".pyi",
            ".js",
            ".mjs",
            ".cjs",
            ".jsx",
            ".ts",
            ".tsx",
            ".vue",
            ".svelte",
            ".java",
            ".kt",
            ".kts",
            ".scala",
            ".groovy",
            ".c",
            ".h",
            ".cc",
            ".cpp",
            ".cxx",
            ".hh",
            ".hpp",
            ".cs",
            ".go",
            ".rs",
            ".swift",
            ".m",
            ".mm",
            ".r",
            ".jl",
            ".rb",
            ".php",
            ".pl",
            ".pm",
            ".lua",
            ".sh",
            ".bash",
            ".zsh",
            ".fish",
            ".ps1",
            ".bat",
            ".cmd",
            ".sql",
            ".css",
            ".scss",
            ".less",
            ".dart",
            ".ex",
            ".exs",
            ".erl",
            ".hs",
            ".ml",
            ".fs",
            ".clj",
            ".lisp",
            ".el",
            ".vb",
            ".pas",
            ".f90",
            ".asm",
            ".proto",
            ".graphql",
            ".tf",
            ".hcl",
            ".toml",
            ".ini",
            ".cfg",
            ".conf",
            ".properties",
            ".env",
            ".gradle",
            ".cmake",
            ".dockerfile",
            ".makefile",
            ".mk",
            ".sol",
            ".zig",
            ".nim",
            ".v",
            ".sv",
            ".vhd",
            ".tcl",
            ".awk",
        ]
    )

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        lines = add_code(builder, decoded.text)
        return builder.finish(Coverage("lines", lines, lines))


def add_code(builder: TextBuilder, text: str) -> int:
    """Adds the pieces of a program; gives the number of lines that hold something."""
    filled = 0
    for line, piece in _iter_pieces(text.expandtabs(4).split("\n")):
        builder.code("\n".join(piece), line=line)
        filled += sum(bool(part.strip()) for part in piece)
    return filled


def _iter_pieces(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines, each with the number of its first line, empty lines around it dropped."""
    start, piece, blank = 1, list[str](), False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            blank = True
            if piece:
                piece.append("")
            continue
        if piece and ((blank and _may_cut(line, len(piece))) or len(piece) >= _HARD_LIMIT):
            yield start, piece
            piece = []
        start = start if piece else number
        piece.append(line)
        blank = False
    if piece:
        yield start, piece


def _may_cut(line: str, size: int) -> bool:
    """Whether a piece may end before this line, which follows an empty one."""
    if line[0] in _CLOSERS:
        return False
    return not line[0].isspace() or size >= _MOST_LINES
