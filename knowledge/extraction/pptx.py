"""PowerPoint files (.pptx): slides with their number, title, boxes, tables, charts, notes and comments.

The parts are read directly: python-pptx refuses Strict and slightly malformed files and does not
reach diagrams and comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import regex
from lxml import etree

from knowledge.extraction.base import (
    Coverage,
    Extracted,
    ExtractionError,
    Extractor,
    Fault,
    Limits,
    Source,
)
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.drawing import MC, A, body_text, chosen, linked_texts, paragraph_text
from knowledge.extraction.ooxml import RELATIONS_NAMESPACE, Package

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_TITLES = frozenset({"title", "ctrTitle"})
_BODIES = frozenset({"body", "obj", ""})
# Numbers, dates and the small picture of the slide on its notes page.
_FURNITURE = frozenset({"sldNum", "dt", "sldImg", "hdr"})
_FOOTER = "ftr"
_ROW_HEIGHT = 228_600  # boxes whose tops differ by less (a quarter inch, in EMU) stand in one row
_MAX_GROUP_DEPTH = 50
_NUMBER = regex.compile(r"(\d+)\.xml$")


@dataclass(frozen=True, slots=True)
class _Shape:
    node: etree._Element
    kind: str | None  # of its placeholder; None for a free shape
    top: int
    left: int


class PptxExtractor(Extractor):
    """Each slide is a level-2 heading with its boxes in reading order under it."""

    mime_types: ClassVar[frozenset[str]] = frozenset({
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        "application/vnd.openxmlformats-officedocument.presentationml.template",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    })  # fmt: skip
    suffixes: ClassVar[frozenset[str]] = frozenset({".pptx", ".ppsx", ".potx", ".pptm", ".ppsm"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        """Read the file. Raises `ExtractionError`."""
        package = Package(source, limits)
        main = package.main_part("ppt/presentation.xml")
        slides = _slide_parts(package, main)
        if not slides and package.xml(main) is None:
            raise package.corrupt()
        if len(slides) > limits.max_pages:
            raise ExtractionError(
                Fault.TOO_LARGE,
                f"{source.filename} has {len(slides):,} slides; at most {limits.max_pages:,} are read. "
                "Split it into smaller files.",
            )
        builder = TextBuilder(limits)
        reader = _SlideReader(package, builder, _comment_authors(package, main))
        with_text = sum(reader.read(part, number) for number, part in enumerate(slides, start=1))
        if damage := package.damage_warning():
            builder.warn(damage)
        title, facts = package.facts()
        return builder.finish(
            Coverage("slides", len(slides), with_text),
            # What PowerPoint writes unasked is no title.
            title="" if title == "PowerPoint Presentation" else title,
            metadata=facts,
        )


class _SlideReader:
    """Writes slide after slide into the builder."""

    def __init__(self, package: Package, builder: TextBuilder, authors: dict[str, str]) -> None:
        self._package = package
        self._builder = builder
        self._authors = authors
        self._footers: set[str] = set()

    def read(self, part: str, number: int) -> bool:
        """Write one slide; whether it has text."""
        root = self._package.xml(part)
        if root is None:
            self._builder.warn(f"Slide {number} is damaged and was left out.")
            return False
        shapes = [shape for shape in self._shapes(root, part) if shape.kind not in _FURNITURE]
        notes = [f"Notes: {text}" for text in self._notes(part)]
        comments = list(self._comments(part))
        titles = [text for shape in shapes if shape.kind in _TITLES and (text := _text(shape.node))]
        before = self._builder.block_count
        hidden = " (hidden)" if root.get("show") in {"0", "false"} else ""
        heading = " ".join(titles) or f"Slide {number}"
        rest = [shape for shape in shapes if shape.kind not in _TITLES]
        if titles or notes or comments or any(self._has_text(shape, part) for shape in rest):
            self._builder.heading(heading + hidden, 2, page=number)
        for shape in rest:
            self._write(shape, part, number)
        for text in (*notes, *comments):
            self._builder.paragraph(text, page=number)
        return self._builder.block_count > before

    def _shapes(self, root: etree._Element, part: str) -> list[_Shape]:
        """The shapes in reading order: by rows from the top, from left to right in a row."""
        places = self._inherited_places(part)
        shapes = [
            _Shape(node, kind, *(_place(node) or places.get(_key(node)) or (0, 0)))
            for tree in root.iterfind(f"{_P}cSld/{_P}spTree")
            for node in _flat(tree, 0)
            for kind in [_placeholder_kind(node)]
        ]
        return sorted(shapes, key=lambda shape: (shape.top // _ROW_HEIGHT, shape.left))

    def _inherited_places(self, part: str) -> dict[tuple[str, str], tuple[int, int]]:
        """Where the layout and its master put the placeholders that a slide leaves in place."""
        places: dict[tuple[str, str], tuple[int, int]] = {}
        for layout in self._package.related(part, "slideLayout"):
            for name in (layout, *self._package.related(layout, "slideMaster")):
                root = self._package.xml(name)
                for node in root.iter(f"{_P}sp") if root is not None else ():
                    if (place := _place(node)) is not None:
                        places.setdefault(_key(node), place)
        return places

    def _has_text(self, shape: _Shape, part: str) -> bool:
        if next(shape.node.iter(f"{A}t"), None) is not None:
            return True
        return any(linked_texts(self._package, part, shape.node))

    def _write(self, shape: _Shape, part: str, page: int) -> None:
        if shape.node.tag == f"{_P}graphicFrame":
            for table in shape.node.iter(f"{A}tbl"):
                self._table(table, page)
            for text in linked_texts(self._package, part, shape.node):
                self._builder.paragraph(text, page=page)
            return
        text = _text(shape.node)
        if shape.kind == _FOOTER:
            if text not in self._footers:
                self._footers.add(text)
                self._builder.paragraph(text, page=page)
            return
        paragraphs = [
            paragraph
            for body in shape.node.iterfind(f"{_P}txBody")
            for paragraph in body.iterfind(f"{A}p")
            if paragraph_text(paragraph).strip()
        ]
        if shape.kind in _BODIES and len(paragraphs) > 1:
            for paragraph in paragraphs:
                self._builder.list_item(
                    paragraph_text(paragraph), depth=_depth(paragraph), page=page
                )
        else:
            self._builder.paragraph(text, page=page)

    def _table(self, table: etree._Element, page: int) -> None:
        rows = [
            [_cell_text(cell) for cell in row.iterfind(f"{A}tc")]
            for row in table.iterfind(f"{A}tr")
        ]
        if len(rows) == 1:
            self._builder.paragraph(" | ".join(cell for cell in rows[0] if cell), page=page)
            return
        for index, row in enumerate(rows):
            write = self._builder.table_row if index else self._builder.table_header
            write(row, page=page)

    def _notes(self, part: str) -> Iterator[str]:
        for name in self._package.related(part, "notesSlide"):
            root = self._package.xml(name)
            for tree in root.iterfind(f"{_P}cSld/{_P}spTree") if root is not None else ():
                for node in _flat(tree, 0):
                    kind = _placeholder_kind(node)
                    text = _text(node) if kind not in _FURNITURE and kind != _FOOTER else ""
                    if text:
                        yield text

    def _comments(self, part: str) -> Iterator[str]:
        for name in self._package.related(part, "comments"):
            root = self._package.xml(name)
            for node in root.iter("{*}cm", "{*}reply") if root is not None else ():
                # Older comments are a `text`, newer ones a text body.
                texts = [child.text or "" for child in node.iterfind("{*}text")]
                texts += [body_text(child) for child in node.iterfind("{*}txBody")]
                text = "\n".join(texts).strip()
                author = self._authors.get(node.get("authorId", ""), "")
                if text:
                    yield f"Comment by {author}: {text}" if author else f"Comment: {text}"


def _slide_parts(package: Package, main: str) -> Sequence[str]:
    """The slide parts in the order of the show; in the order of their numbers where that is lost."""
    root = package.xml(main)
    relations = package.relations(main)
    entries = root.iter(f"{_P}sldId") if root is not None else ()
    targets = [relations.get(entry.get(f"{RELATIONS_NAMESPACE}id", "")) for entry in entries]
    parts = [
        target.target for target in targets if target is not None and package.has(target.target)
    ]
    if parts:
        return parts
    numbered = [
        (int(match[1]), name)
        for name in package.names("ppt/slides/slide")
        if (match := _NUMBER.search(name)) is not None
    ]
    return [name for _, name in sorted(numbered)]


def _comment_authors(package: Package, main: str) -> dict[str, str]:
    authors: dict[str, str] = {}
    for kind in ("commentAuthors", "authors"):
        for name in package.related(main, kind):
            root = package.xml(name)
            for node in root if root is not None else ():
                authors[node.get("id", "")] = node.get("name", "")
    return authors


def _flat(tree: etree._Element, depth: int) -> Iterator[etree._Element]:
    """The shapes of a tree; a group's shapes in the group's place."""
    if depth > _MAX_GROUP_DEPTH:
        return
    for node in tree:
        if node.tag == f"{MC}AlternateContent":
            branch = chosen(node)
            if branch is not None:
                yield from _flat(branch, depth + 1)
        elif node.tag == f"{_P}grpSp":
            yield from _flat(node, depth + 1)
        elif node.tag in {f"{_P}sp", f"{_P}graphicFrame", f"{_P}cxnSp"}:
            yield node


def _place(node: etree._Element) -> tuple[int, int] | None:
    """Top and left of a shape on the slide; of the outermost group for a grouped one."""
    own = node
    for parent in node.iterancestors(f"{_P}grpSp"):
        own = parent
    for path in (f"{_P}xfrm", f"{_P}spPr/{A}xfrm", f"{_P}grpSpPr/{A}xfrm"):
        offset = own.find(f"{path}/{A}off")
        if offset is not None:
            return _number(offset.get("y")), _number(offset.get("x"))
    return None


def _placeholder(node: etree._Element) -> etree._Element | None:
    return next(node.iterfind(f"*/{_P}nvPr/{_P}ph"), None)


def _placeholder_kind(node: etree._Element) -> str | None:
    placeholder = _placeholder(node)
    return None if placeholder is None else placeholder.get("type", "")


def _key(node: etree._Element) -> tuple[str, str]:
    """What a slide's placeholder shares with that of its layout; titles have no index."""
    placeholder = _placeholder(node)
    if placeholder is None:
        return "", ""
    kind = placeholder.get("type", "")
    return ("title", "") if kind in _TITLES else ("", placeholder.get("idx", "0"))


def _text(node: etree._Element) -> str:
    return "\n".join(body_text(body) for body in node.iterfind(f"{_P}txBody")).strip()


def _cell_text(cell: etree._Element) -> str:
    """The text of a table cell; of a merged cell only its first part has one."""
    if cell.get("hMerge") in {"1", "true"} or cell.get("vMerge") in {"1", "true"}:
        return ""
    return "\n".join(body_text(body) for body in cell.iterfind(f"{A}txBody"))


def _depth(paragraph: etree._Element) -> int:
    properties = paragraph.find(f"{A}pPr")
    return min(_number(properties.get("lvl")), 8) if properties is not None else 0


def _number(text: str | None) -> int:
    """A whole number from an attribute; malformed files hold anything."""
    try:
        return max(int(text or "0"), 0)
    except ValueError:
        return 0
