"""Walks an HTML tree and turns it into blocks, so that no block ever runs into the next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

from lxml import etree

from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.html_tables import BLOCKS, Element, add_table, is_data_table, is_dropped

_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_TAG = re.compile(r"<[^<>]*>")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_RAW_TEXT = frozenset({"noframes", "iframe", "noembed", "noscript"})  # markup kept as text
_BULLET = "-"


@dataclass(slots=True)
class _List:
    numbered: bool
    number: int


@dataclass(slots=True)
class _Item:
    marker: str
    depth: int
    written: bool = False


class BlockWalker:
    """One pass over one tree. `heading_shift` lowers all headings, for HTML inside a document."""

    def __init__(self, builder: TextBuilder, *, heading_shift: int = 0) -> None:
        self._builder = builder
        self._shift = heading_shift
        self._pieces: list[str] = []
        self._lists: list[_List] = []
        self._items: list[_Item] = []
        self._heading = 0
        self._preformatted = 0
        self._after_link = False

    def walk(self, root: Element) -> None:
        """Adds everything under `root`."""
        skipped: Element = None
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, node in walker:
            if event == "start":
                if self._start(node):
                    skipped = node
                    walker.skip_subtree()
            else:
                if node is skipped:
                    skipped = None
                else:
                    self._end(node)
                if node is not root:
                    self._text(node.tail)
        self._flush()

    def _start(self, node: Element) -> bool:
        """Opens an element; true when its inside is done or not wanted."""
        if is_dropped(node):
            return True
        tag = node.tag
        if tag == "table" and is_data_table(node):
            self._flush()
            add_table(self._builder, node)
            return True
        if tag in BLOCKS:
            self._flush()
            self._open_block(node, tag)
        elif tag == "br":
            self._pieces.append("\n")
        elif tag == "img":
            self._text(f" {node.get('alt') or ''} ")
        elif tag == "a" and self._after_link:
            self._pieces.append(" ")  # menus are often links with nothing in between
        self._text(unescape(_TAG.sub(" ", node.text or "")) if tag in _RAW_TEXT else node.text)
        return False

    def _open_block(self, node: Element, tag: str) -> None:
        if tag in _HEADINGS:
            self._heading = min(_HEADINGS[tag] + self._shift, 6)
        elif tag in _LISTS:
            self._lists.append(_List(tag == "ol", _integer(node.get("start"), 1)))
        elif tag == "li":
            self._items.append(self._new_item(node))
        elif tag == "pre":
            self._preformatted += 1

    def _new_item(self, node: Element) -> _Item:
        depth = max(len(self._lists) - 1, 0)
        if not self._lists or not self._lists[-1].numbered:
            return _Item(_BULLET, depth)
        current = self._lists[-1]
        number = _integer(node.get("value"), current.number)
        current.number = number + 1
        return _Item(f"{number}.", depth)

    def _end(self, node: Element) -> None:
        tag = node.tag
        if tag == "a":
            self._after_link = True
        if tag not in BLOCKS:
            return
        self._flush()
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in _LISTS and self._lists:
            self._lists.pop()
        elif tag == "li" and self._items:
            self._items.pop()
        elif tag == "pre":
            self._preformatted -= 1

    def _text(self, text: str | None) -> None:
        if not text:
            return
        self._after_link = False
        self._pieces.append(text if self._preformatted else _SPACE.sub(" ", text))

    def _flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._after_link = False
        if not text.strip():
            return
        item = self._items[-1] if self._items else None
        if self._heading:
            self._builder.heading(text, self._heading)
        elif item and not item.written and not (self._preformatted and "\n" in text.strip()):
            item.written = True
            self._builder.list_item(text, depth=item.depth, marker=item.marker)
        elif self._preformatted and "\n" in text.strip():
            self._builder.code(text)
        else:
            self._builder.paragraph(text)


def _integer(text: str | None, default: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        return default
