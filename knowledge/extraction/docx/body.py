"""The blocks of a Word document in reading order: headings, paragraphs, lists, tables, text boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lxml import etree

from knowledge.extraction.base import Limits
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.docx.embedded import write_embedded
from knowledge.extraction.docx.names import W, number_of, value_of
from knowledge.extraction.docx.numbering import Numbering
from knowledge.extraction.docx.runs import NoteKind, Running, ends_in_deletion, read_running
from knowledge.extraction.docx.styles import ParagraphStyle, Styles
from knowledge.extraction.docx.tables import Cell, Row, is_brief, is_layout, read_rows, width_of
from knowledge.extraction.drawing import MC, chosen, linked_texts
from knowledge.extraction.ooxml import RELATIONS_NAMESPACE, Package

_CONTAINERS = frozenset({
    f"{W}sdt", f"{W}sdtContent", f"{W}customXml", f"{W}smartTag", f"{W}ins", f"{W}moveTo", f"{W}body",
})  # fmt: skip
_NOTE_LABELS: Mapping[NoteKind, str] = {
    "footnote": "Footnote",
    "endnote": "Endnote",
    "comment": "Comment",
}
_MAX_DEPTH = 60


class BodyReader:
    """Writes the blocks of one part into the builder, with the notes that are anchored in them."""

    def __init__(
        self,
        package: Package,
        builder: TextBuilder,
        styles: Styles,
        numbering: Numbering,
        notes: Mapping[tuple[NoteKind, str], etree._Element],
        limits: Limits,
    ) -> None:
        self.paragraphs_with_text = 0
        self.first_title = ""
        self._package = package
        self._builder = builder
        self._styles = styles
        self._numbering = numbering
        self._notes = dict(notes)
        self._limits = limits
        self._part = ""
        self._with_headings = False
        self._carried = ""
        self._numbers: dict[NoteKind, int] = {}

    def read(self, part: str, node: etree._Element, *, with_headings: bool = False) -> None:
        """Write the blocks below `node`, which belongs to `part`."""
        self._part, self._with_headings = part, with_headings
        self._blocks(node, 0)
        if self._carried.strip():
            self._builder.paragraph(self._carried)
        self._carried = ""

    def read_leftover_notes(self) -> None:
        """Write the notes that nothing in the text refers to."""
        for kind, note_id in list(self._notes):
            self._note(kind, note_id)

    def _blocks(self, nodes: Iterable[etree._Element], depth: int) -> None:
        if depth > _MAX_DEPTH:
            self._builder.warn("Text nested more than 60 levels deep was left out.")
            return
        for child in nodes:
            if child.tag == f"{W}p":
                self._paragraph(child, depth)
            elif child.tag == f"{W}tbl":
                self._table(child, depth)
            elif child.tag in _CONTAINERS:
                self._blocks(child, depth + 1)
            elif child.tag == f"{MC}AlternateContent":
                branch = chosen(child)
                if branch is not None:
                    self._blocks(branch, depth + 1)
            elif child.tag == f"{W}altChunk":
                self._embedded_part(child)

    def _paragraph(self, node: etree._Element, depth: int) -> None:
        running = read_running(node)
        self.paragraphs_with_text += bool(running.text.strip())
        if ends_in_deletion(node):
            self._carried += running.text
        else:
            text, self._carried = self._carried + running.text, ""
            if text.strip():
                self._write(node, text)
        self._hanging(running, depth)

    def _write(self, node: etree._Element, text: str) -> None:
        properties = node.find(f"{W}pPr")
        style = self._styles.of(properties)
        marker, level = self._marker(properties, style)
        if style.is_title and not self.first_title:
            self.first_title = text
        if self._with_headings and (style.level or style.is_title):
            numbered = f"{marker} {text}" if marker not in {"", "-"} else text
            self._builder.heading(numbered, style.level or 1)
        elif marker:
            self._builder.list_item(text, depth=level, marker=marker)
        else:
            self._builder.paragraph(text)

    def _marker(self, properties: etree._Element | None, style: ParagraphStyle) -> tuple[str, int]:
        list_id = value_of(properties, "numPr/numId") or style.number_id
        if not list_id or list_id == "0":
            return "", 0
        own = value_of(properties, "numPr/ilvl")
        level = number_of(own) if own is not None else style.number_level or 0
        level = min(max(level, 0), 8)
        return self._numbering.next_marker(list_id, level), level

    def _hanging(self, running: Running, depth: int) -> None:
        """What is anchored in a paragraph: text boxes, charts, notes."""
        for box in running.boxes:
            carried, self._carried = self._carried, ""
            self._blocks(box, depth + 1)
            self._carried = carried
        for drawing in running.drawings:
            for text in linked_texts(self._package, self._part, drawing):
                self._builder.paragraph(text)
        for kind, note_id in running.notes:
            self._note(kind, note_id)

    def _note(self, kind: NoteKind, note_id: str) -> None:
        node = self._notes.pop((kind, note_id), None)
        if node is None:
            return
        label = _NOTE_LABELS[kind]
        if kind == "comment":
            author = node.get(f"{W}author", "").strip()
            label = f"{label} by {author}" if author else label
        else:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            label = f"{label} {self._numbers[kind]}"
        # The label goes into the first paragraph, tables in a note follow it.
        first = next((child for child in node if child.tag == f"{W}p"), None)
        running = read_running(first) if first is not None else Running()
        if running.text.strip():
            self._builder.paragraph(f"{label}: {running.text.strip()}")
        self._hanging(running, 1)
        for child in node:
            if child is not first:
                self._blocks([child], 1)

    def _table(self, table: etree._Element, depth: int) -> None:
        rows = read_rows(table)
        if is_layout(rows):
            self._layout(rows, depth)
            return
        width = width_of(rows)
        hanging: list[Running] = []
        lines = [self._line(row, width, hanging) for row in rows]
        captions, header_rows = _captions_and_headers(rows, lines)
        for line in lines[:captions]:
            self._builder.paragraph(" ".join(line))
        end = captions + header_rows
        self._builder.table_header(_joined_header(rows[captions:end], lines[captions:end], width))
        for line in lines[end:]:
            self._builder.table_row(line)
        for running in hanging:
            self._hanging(running, depth)

    def _layout(self, rows: Sequence[Row], depth: int) -> None:
        for row in rows:
            if len(row.cells) > 1 and all(is_brief(cell) for cell in row.cells):
                hanging: list[Running] = []
                texts = [self._cell_text(cell.node, hanging).strip() for cell in row.cells]
                self._builder.paragraph(" | ".join(text for text in texts if text))
                for running in hanging:
                    self._hanging(running, depth)
                continue
            for cell in row.cells:
                self._blocks(cell.node, depth + 1)

    def _line(self, row: Row, width: int, hanging: list[Running]) -> list[str]:
        line = [""] * width
        for cell in row.cells:
            # A merged cell's text stands once, at its first row and column.
            if not cell.is_continued:
                line[cell.column] = self._cell_text(cell.node, hanging)
        return line

    def _cell_text(self, node: etree._Element, hanging: list[Running]) -> str:
        parts: list[str] = []
        for paragraph in _paragraphs(node):
            running = read_running(paragraph)
            properties = paragraph.find(f"{W}pPr")
            if running.text.strip():
                self.paragraphs_with_text += 1
                marker, _ = self._marker(properties, self._styles.of(properties))
                parts.append(f"{marker} {running.text}" if marker else running.text)
            if running.boxes or running.drawings or running.notes:
                hanging.append(running)
        return "\n".join(parts)

    def _embedded_part(self, node: etree._Element) -> None:
        relation = self._package.relations(self._part).get(node.get(f"{RELATIONS_NAMESPACE}id", ""))
        if relation is not None:
            write_embedded(self._package, self._builder, relation.target, self._limits)


def _paragraphs(cell: etree._Element) -> Iterable[etree._Element]:
    """All paragraphs of a cell, those of small tables within included, text boxes not."""
    for child in cell:
        if child.tag == f"{W}p":
            yield child
        elif isinstance(child.tag, str) and child.tag not in {
            f"{W}del",
            f"{W}moveFrom",
            f"{W}tcPr",
        }:
            yield from _paragraphs(child)


def _captions_and_headers(rows: Sequence[Row], lines: Sequence[Sequence[str]]) -> tuple[int, int]:
    """How many rows on top are captions over the whole width, and how many under them are headers."""
    captions = 0
    while (
        captions < len(rows) - 2 and len(rows[captions].cells) == 1 and lines[captions][0].strip()
    ):
        captions += 1
    headers = 0
    while captions + headers < len(rows) - 1 and rows[captions + headers].is_header:
        headers += 1
    return captions, max(headers, 1)


def _joined_header(rows: Sequence[Row], lines: Sequence[Sequence[str]], width: int) -> list[str]:
    """One header line of several: each column gets the texts of all cells above it."""
    if len(rows) == 1:
        return list(lines[0])
    columns: list[list[str]] = [[] for _ in range(width)]
    for row, line in zip(rows, lines, strict=True):
        for cell in row.cells:
            _spread(cell, line[cell.column].strip(), columns)
    return [" ".join(column) for column in columns]


def _spread(cell: Cell, text: str, columns: list[list[str]]) -> None:
    for column in columns[cell.column : cell.column + cell.span]:
        if text and text not in column:
            column.append(text)
