"""Walks an XML tree of unknown vocabulary and judges by its shape what is record and what prose."""

from __future__ import annotations

import re
from itertools import takewhile, zip_longest

from lxml import etree

from knowledge.extraction.base import Limits
from knowledge.extraction.builder import TextBuilder, one_line
from knowledge.extraction.html import html_to_text
from knowledge.extraction.html_tables import Element

_TITLES = frozenset({"title", "head", "heading", "subtitle"})
_PROSE = frozenset(
    [
        "p",
        "para",
        "simpara",
        "text",
        "span",
        "div",
        "li",
        "item",
        "listitem",
        "body",
        "line",
        "l",
        "seg",
        "ab",
        "note",
        "quote",
        "value",
        "entry",
        "cell",
        "td",
        "th",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "tspan",
        "content",
    ]
)
_TABLES = frozenset({"table", "informaltable", "tgroup"})
_ROWS = frozenset({"row", "tr"})
_HEADS = frozenset({"thead", "tablehead"})
_LAYOUT = frozenset({"colspec", "spanspec", "col", "style", "script", "defs"})
# Attributes that steer programs rather than inform readers.
_NOISE = frozenset(
    [
        "class",
        "style",
        "lang",
        "space",
        "base",
        "schemalocation",
        "nonamespaceschemalocation",
        "ispermalink",
        "xmlns",
        "transform",
        "d",
        "viewbox",
        "fill",
        "stroke",
        "width",
        "height",
        "x",
        "y",
        "cx",
        "cy",
        "r",
        "points",
    ]
)
_NUMBER = re.compile(r"^[-+]?\d+(?:[.,]\d+)*$")
_MOST_BAND_ROWS = 5
_MARKUP = re.compile(r"</?(?:p|br|b|i|div|a|ul|li|em|strong|span|img|table)\b[^>]*>", re.IGNORECASE)


class XmlWalker:
    """One pass over one tree, whose depth the caller has checked."""

    def __init__(self, builder: TextBuilder, limits: Limits) -> None:
        self._builder = builder
        self._limits = limits

    def walk(self, root: Element) -> None:
        """Adds everything under `root`."""
        self._visit(root, 1)

    def _visit(self, node: Element, level: int) -> None:
        name = local_name(node)
        if not name or name in _LAYOUT:
            return
        if name in _TABLES and any(local_name(row) in _ROWS for row in node.iterdescendants()):
            self._table(node)
        elif _is_leaf(node):
            self._builder.paragraph(self._leaf(node, record=False), line=node.sourceline)
        elif _is_mixed(node):
            self._prose(node, level)
        elif all(_is_leaf(child) for child in node):
            self._record(node)
        else:
            self._container(node, level)

    def _record(self, node: Element) -> None:
        """An element of leaves only: one paragraph, a line each."""
        lines = [_attributes(node), *(self._leaf(child, record=True) for child in node)]
        self._builder.paragraph("\n".join(filter(None, lines)), line=node.sourceline)

    def _container(self, node: Element, level: int) -> None:
        lines = [_attributes(node)] if level > 1 else []  # the root states versions and schemas
        start = node.sourceline
        for child in node:
            if _is_leaf(child) and local_name(child) in _TITLES:
                self._lines(lines, start)
                self._builder.heading(own_text(child), level, line=child.sourceline)
            elif _is_leaf(child) and local_name(child) not in _PROSE:
                lines.append(self._leaf(child, record=True))
                start = start if len(lines) > 1 else child.sourceline
            else:
                self._lines(lines, start)
                self._visit(child, level + 1)
        self._lines(lines, start)

    def _lines(self, lines: list[str], start: int | None) -> None:
        self._builder.paragraph("\n".join(filter(None, lines)), line=start)
        lines.clear()

    def _prose(self, node: Element, level: int) -> None:
        """Text with elements in it: on one paragraph, unless the elements have parts themselves."""
        if not any(not _is_leaf(child) and not _is_mixed(child) for child in node):
            self._builder.paragraph(own_text(node), line=node.sourceline)
            return
        self._builder.paragraph(node.text or "", line=node.sourceline)
        for child in node:
            self._visit(child, level + 1)
            self._builder.paragraph(child.tail or "", line=child.sourceline)

    def _leaf(self, node: Element, *, record: bool) -> str:
        """`name: text`, with the attributes that say something."""
        name = local_name(node)
        if not name or name in _LAYOUT:
            return ""
        text, facts = own_text(node), _attributes(node)
        if _MARKUP.search(text):
            text = html_to_text(text, self._limits)
        if not text:
            return f"{name}: {facts}" if facts else ""
        if name in _PROSE and not record:
            return text
        return f"{name} ({facts}): {text}" if facts else f"{name}: {text}"

    def _table(self, table: Element) -> None:
        for child in table:
            if local_name(child) in _TITLES | {"caption"}:
                self._builder.paragraph(own_text(child), line=child.sourceline)
        groups = [child for child in table if local_name(child) == "tgroup"]
        for group in groups or [table]:
            self._rows(group, stacked=len(groups) > 1)

    def _rows(self, group: Element, *, stacked: bool) -> None:
        rows = [row for row in group.iterdescendants() if local_name(row) in _ROWS]
        heads = [row for row in rows if local_name(row.getparent()) in _HEADS]
        body = [row for row in rows if row not in heads]
        titles = [_cells(row) for row in heads]
        header = titles.pop() if titles and sum(map(bool, titles[-1])) > 1 else []
        if stacked and not header:
            band = _header_band(body)
            header, body = _merge(band), body[len(band) :]
        self._builder.end_table()
        for cells in titles:
            self._builder.paragraph(" ".join(filter(None, cells)))
        width = max((len(_cells(row)) for row in rows), default=0)
        if header:
            self._builder.table_header(header + [""] * (width - len(header)))
        for row in body:
            cells = _cells(row)
            self._builder.table_row(cells + [""] * (width - len(cells)), line=row.sourceline)
        self._builder.end_table()


def _header_band(rows: list[Element]) -> list[Element]:
    """Leading rows without a number: patents set the lines of one header as rows of their own."""
    band = list(takewhile(lambda row: not any(map(_NUMBER.search, _cells(row)[1:])), rows))
    return band if len(band) <= _MOST_BAND_ROWS else []


def _merge(rows: list[Element]) -> list[str]:
    columns = zip_longest(*map(_cells, rows), fillvalue="")
    return [" ".join(filter(None, column)) for column in columns]


def local_name(node: Element) -> str:
    """The lower-case name without its namespace; empty for what is not an element."""
    return etree.QName(node).localname.lower() if isinstance(node.tag, str) else ""


def own_text(node: Element) -> str:
    """All text inside, unexpanded entities as they are written."""
    return "\n".join(
        one_line(line) for line in "".join(node.itertext()).strip().split("\n")
    ).strip()


def _cells(row: Element) -> list[str]:
    return [one_line(" ".join(cell.itertext())) for cell in row if local_name(cell)]


def _is_leaf(node: Element) -> bool:
    return not any(isinstance(child.tag, str) for child in node)


def _is_mixed(node: Element) -> bool:
    """Whether text and elements stand side by side."""
    texts = [node.text, *(child.tail for child in node)]
    return not _is_leaf(node) and any(text and text.strip() for text in texts)


def _attributes(node: Element) -> str:
    facts = []
    for key, value in node.attrib.items():
        qualified = etree.QName(key)
        known = qualified.localname.lower() in _NOISE or qualified.namespace
        if not known and value.strip():
            facts.append(f"{qualified.localname} {one_line(value)}")
    return ", ".join(facts)
