"""Markdown (CommonMark with tables) → headings, paragraphs, lists, tables and code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder, clean, one_line
from knowledge.extraction.decoding import decode
from knowledge.extraction.front_matter import read_front_matter
from knowledge.extraction.html import add_html

_DATA_URI = re.compile(r"data:[\w/+.-]+(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=]+")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_MAX_NESTING = 120


class MarkdownExtractor(Extractor):
    """Markdown files; front matter becomes title and metadata."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"text/markdown", "text/x-markdown"})
    suffixes: ClassVar[frozenset[str]] = frozenset(
        {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rmd", ".qmd"}
    )

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        text = clean(decoded.text)
        front = read_front_matter(text)
        body = "\n".join(text.split("\n")[front.lines :])
        reader = _Reader(builder, first_line=front.lines + 1)
        tokens = _parser().parse(_DATA_URI.sub("", body))
        headings = [inline.content for inline in _titles(tokens)]
        if front.title and one_line(front.title) not in map(one_line, headings):
            builder.heading(front.title, 1, line=1)
        reader.read(tokens)
        count = builder.block_count
        title = front.title or (headings[0] if headings else "")
        return builder.finish(
            Coverage("paragraphs", count, count), title=title, metadata=front.metadata
        )


def _parser() -> MarkdownIt:
    # The preset's nesting limit of 20 drops what is deeper without a word.
    return MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable(["table", "strikethrough"])


def _titles(tokens: Sequence[Token]) -> list[Token]:
    """The inline tokens of level-1 headings."""
    return [
        tokens[index + 1]
        for index, token in enumerate(tokens[:-1])
        if token.type == "heading_open" and token.tag == "h1"
    ]


@dataclass(slots=True)
class _List:
    marker: str
    number: int
    fresh: bool = False  # the open entry has not shown its marker yet


class _Reader:
    """Turns the flat token stream into blocks; the only state is what is open."""

    def __init__(self, builder: TextBuilder, *, first_line: int) -> None:
        self._builder = builder
        self._first_line = first_line
        self._lists: list[_List] = []
        self._heading = 0
        self._cells: list[str] | None = None
        self._in_header = False
        self._row_line: int | None = None
        self._handlers: dict[str, Callable[[Token], None]] = {
            "heading_open": self._open_heading,
            "heading_close": self._close_heading,
            "inline": self._inline,
            "fence": self._code,
            "code_block": self._code,
            "html_block": self._html,
            "hr": self._rule,
            "bullet_list_open": self._open_list,
            "ordered_list_open": self._open_list,
            "bullet_list_close": self._close_list,
            "ordered_list_close": self._close_list,
            "list_item_open": self._open_item,
            "thead_open": self._open_header,
            "tr_open": self._open_row,
            "tr_close": self._close_row,
            "table_close": self._close_table,
        }

    def read(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            handler = self._handlers.get(token.type)
            if handler:
                handler(token)

    def _line(self, token: Token) -> int | None:
        return self._first_line + token.map[0] if token.map else None

    def _open_heading(self, token: Token) -> None:
        self._heading = int(token.tag[1:])

    def _close_heading(self, _token: Token) -> None:
        self._heading = 0

    def _inline(self, token: Token) -> None:
        text = inline_text(token.children or [])
        line = self._line(token)
        if self._cells is not None:
            self._cells.append(text)
        elif self._heading:
            self._builder.heading(text, self._heading, line=line)
        elif self._lists and self._lists[-1].fresh:
            current = self._lists[-1]
            current.fresh = False
            self._builder.list_item(
                text, depth=len(self._lists) - 1, marker=current.marker, line=line
            )
        else:
            self._builder.paragraph(text, line=line)

    def _code(self, token: Token) -> None:
        line = self._line(token)
        offset = 1 if token.type == "fence" else 0
        self._builder.code(token.content, line=None if line is None else line + offset)

    def _html(self, token: Token) -> None:
        add_html(self._builder, token.content)

    def _rule(self, token: Token) -> None:
        self._builder.paragraph("---", line=self._line(token))

    def _open_list(self, token: Token) -> None:
        start = token.attrGet("start")
        number = int(start) if token.type == "ordered_list_open" and start is not None else 1
        self._lists.append(_List("-", number))

    def _close_list(self, _token: Token) -> None:
        self._lists.pop()

    def _open_item(self, token: Token) -> None:
        current = self._lists[-1]
        current.fresh = True
        if token.info:  # the number as written; bullets have none
            current.marker = f"{current.number}."
            current.number += 1

    def _open_header(self, _token: Token) -> None:
        self._in_header = True

    def _open_row(self, token: Token) -> None:
        self._cells = []
        self._row_line = self._line(token)

    def _close_row(self, _token: Token) -> None:
        cells, self._cells = self._cells or [], None
        if self._in_header:
            self._in_header = False
            self._builder.table_header(cells, line=self._row_line)
        else:
            self._builder.table_row(cells, line=self._row_line)

    def _close_table(self, _token: Token) -> None:
        self._builder.end_table()


def inline_text(tokens: Sequence[Token]) -> str:
    """The words of an inline run: link texts, picture descriptions, no markup."""
    pieces: list[str] = []
    for token in tokens:
        if token.type in {"softbreak", "hardbreak"}:
            pieces.append("\n")
        elif token.type == "image":
            pieces.append(inline_text(token.children or []))
        elif token.type == "html_inline":
            pieces.append("\n" if _LINE_BREAK.fullmatch(token.content) else "")
        else:
            pieces.append(token.content)
    return "".join(pieces)
