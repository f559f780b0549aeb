"""Word tables as a grid of cells, and whether they hold data or only lay out text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from knowledge.extraction.docx.names import W, is_on, number_of, value_of

_MAX_COLUMNS = 500
_MAX_BRIEF_CHARS = 80
_WRAPPERS = frozenset({f"{W}sdt", f"{W}sdtContent", f"{W}customXml", f"{W}ins", f"{W}smartTag"})


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and the grid columns it covers. `is_continued` marks the lower parts of a merged one."""

    node: etree._Element
    column: int
    span: int
    is_continued: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row; `is_header` where the row repeats on every page."""

    cells: Sequence[Cell]
    is_header: bool


def read_rows(table: etree._Element) -> list[Row]:
    """The rows of a `w:tbl` without the deleted ones."""
    rows: list[Row] = []
    for node in _children(table, f"{W}tr"):
        properties = node.find(f"{W}trPr")
        if properties is not None and properties.find(f"{W}del") is not None:
            continue
        rows.append(Row(_cells(node, properties), is_on(properties, "tblHeader")))
    return rows


def width_of(rows: Sequence[Row]) -> int:
    """How many grid columns the widest row covers."""
    return max((cell.column + cell.span for row in rows for cell in row.cells), default=0)


def is_layout(rows: Sequence[Row]) -> bool:
    """Whether the table only places text on the page: a single row or column, or tables within."""
    if len(rows) < 2 or width_of(rows) < 2 or all(len(row.cells) < 2 for row in rows):
        return True
    return any(
        len(read_rows(inner)) > 1 and width_of(read_rows(inner)) > 1
        for row in rows
        for cell in row.cells
        for inner in _children(cell.node, f"{W}tbl")
    )


def is_brief(cell: Cell) -> bool:
    """Whether a cell holds one short paragraph: a label or a value, not a column of text."""
    blocks = [child for child in cell.node if child.tag != f"{W}tcPr"]
    text = "".join(node.text or "" for node in cell.node.iter(f"{W}t"))
    return len(blocks) == 1 and blocks[0].tag == f"{W}p" and len(text) <= _MAX_BRIEF_CHARS


def _cells(row: etree._Element, properties: etree._Element | None) -> list[Cell]:
    column = min(max(number_of(value_of(properties, "gridBefore")), 0), _MAX_COLUMNS)
    cells: list[Cell] = []
    for node in _children(row, f"{W}tc"):
        span = max(number_of(value_of(node, "tcPr/gridSpan"), 1), 1)
        span = min(span, _MAX_COLUMNS - column)
        if span < 1:
            break
        merge = node.find(f"{W}tcPr/{W}vMerge")
        is_continued = merge is not None and merge.get(f"{W}val", "continue") == "continue"
        cells.append(Cell(node, column, span, is_continued))
        column += span
    return cells


def _children(node: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Children of a kind, also inside content controls and insertions."""
    for child in node:
        if child.tag == tag:
            yield child
        elif child.tag in _WRAPPERS:
            yield from _children(child, tag)
