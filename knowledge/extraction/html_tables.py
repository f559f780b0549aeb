"""HTML tables: tells tables of data from tables of layout, and reads the former into rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from knowledge.extraction.builder import TextBuilder, one_line

# Nothing a reader sees as text. Ruby readings (`rt`) would split the words they annotate.
DROPPED = frozenset(
    [
        "script",
        "style",
        "template",
        "title",
        "meta",
        "link",
        "base",
        "svg",
        "annotation",
        "rt",
        "rp",
        "param",
        "source",
    ]
)
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "button",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "frame",
        "frameset",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "iframe",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "noframes",
        "noscript",
        "ol",
        "optgroup",
        "option",
        "p",
        "pre",
        "search",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
        "video",
        "audio",
        "object",
    ]
)
_INLINE_HIDDEN = frozenset(
    [
        "span",
        "a",
        "b",
        "i",
        "em",
        "strong",
        "small",
        "sup",
        "sub",
        "font",
        "abbr",
        "bdi",
        "mark",
        "input",
    ]
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_COLSPAN = 100
_MAX_ROWSPAN = 1000
_NOT_IN_DATA = ("table", "h1", "h2", "h3", "h4", "h5", "h6", "pre")
_LONGEST_CELL = 2000
_MOST_HEADER_ROWS = 4

Element = Any  # lxml has no types


def is_dropped(element: Element) -> bool:
    """Whether nothing of the element is shown.

    Blocks hidden by an inline style stay: they are the closed answers, tabs and menus of a page.
    """
    tag = element.tag
    if not isinstance(tag, str) or tag in DROPPED:
        return True
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    return tag in _INLINE_HIDDEN and bool(_HIDDEN_STYLE.search(element.get("style") or ""))


def is_data_table(table: Element) -> bool:
    """Whether rows and columns mean something, and the cells are short enough for a row."""
    if table.get("role") in {"presentation", "none"}:
        return False
    rows = [list(iter_cells(row)) for row in iter_rows(table)]
    if len(rows) < 2 or max(map(len, rows)) < 2:
        return False
    if next(table.iterdescendants(*_NOT_IN_DATA), None) is not None:
        return False
    return all(len(flat_text(cell)) <= _LONGEST_CELL for row in rows for cell in row)


def add_table(builder: TextBuilder, table: Element) -> None:
    """Adds caption, header and rows of a data table."""
    for caption in table.iterchildren("caption"):
        builder.paragraph(flat_text(caption))
    rows = list(iter_rows(table))
    head = _header_rows(rows)
    grid = _grid(rows, head)
    titles = _title_rows(grid)
    for title in grid[:titles]:
        builder.paragraph(next((cell for cell in title if cell), ""))
    builder.end_table()
    if titles >= head and _is_keyed(rows[titles]):
        head = titles
    else:
        head = max(head, titles + 1)
        builder.table_header(_merge_header(grid[titles:head]))
    for cells in grid[head:]:
        builder.table_row(cells)
    builder.end_table()


def iter_rows(table: Element) -> Iterator[Element]:
    """The rows of this table, not those of tables inside it."""
    for child in table.iterchildren("tr", "thead", "tbody", "tfoot"):
        if child.tag == "tr":
            yield child
        else:
            yield from child.iterchildren("tr")


def iter_cells(row: Element) -> Iterator[Element]:
    """The cells of a row."""
    yield from row.iterchildren("td", "th")


def flat_text(element: Element) -> str:
    """All text of an element on one line; list entries are set apart by a semicolon."""
    pieces: list[str] = []
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, node in walker:
        if event == "start" and node is not element and is_dropped(node):
            walker.skip_subtree()
            continue
        if event == "start":
            pieces += (_opening(node), node.text or "" if isinstance(node.tag, str) else "")
        elif node is not element:
            pieces += (" " if node.tag in BLOCKS else "", node.tail or "")
    return re.sub(r"^[; ]+|(?<=[;:.,]);", "", one_line("".join(pieces)).replace(" ;", ";"))


def _opening(node: Element) -> str:
    if node.tag == "li":
        return " ; "
    if node.tag == "img":
        return f" {node.get('alt') or ''} "
    return " " if node.tag in BLOCKS or node.tag == "br" else ""


def _header_rows(rows: list[Element]) -> int:
    count = 0
    for row in rows[: min(_MOST_HEADER_ROWS, len(rows) - 1)]:
        cells = list(iter_cells(row))
        all_heads = bool(cells) and all(cell.tag == "th" for cell in cells)
        if row.getparent().tag != "thead" and not all_heads:
            break
        count += 1
    return count


def _is_keyed(row: Element) -> bool:
    """Whether the row reads `name: value`, so that no row is the header of the others."""
    tags = [cell.tag for cell in iter_cells(row)]
    return tags[:1] == ["th"] and "td" in tags


def _title_rows(grid: list[list[str]]) -> int:
    """Leading rows with one filled cell: a title above the real header."""
    count = 0
    for cells in grid[:-1]:
        if len({cell for cell in cells if cell}) > 1:
            break
        count += 1
    return count if count < len(grid) - 1 else 0


def _grid(rows: list[Element], head: int) -> list[list[str]]:
    """The rows with spans filled in: down always, sideways in the header only."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}  # column → rows left, text
    for number, row in enumerate(rows):
        line: list[str] = []
        for cell in iter_cells(row):
            _take_hanging(line, hanging)
            text = flat_text(cell)
            width = _span(cell, "colspan", _MAX_COLSPAN)
            below = _span(cell, "rowspan", _MAX_ROWSPAN) - 1
            for offset in range(width):
                shown = text if offset == 0 or number < head else ""
                if below:
                    hanging[len(line)] = (below, shown)
                line.append(shown)
        _take_hanging(line, hanging)
        grid.append(line)
    width = max(map(len, grid), default=0)
    return [line + [""] * (width - len(line)) for line in grid]


def _take_hanging(line: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    while len(line) in hanging:
        rows_left, text = hanging.pop(len(line))
        if rows_left > 1:
            hanging[len(line)] = (rows_left - 1, text)
        line.append(text)


def _span(cell: Element, name: str, most: int) -> int:
    value = (cell.get(name) or "").strip()
    return min(max(int(value), 1), most) if value.isascii() and value.isdigit() else 1


def _merge_header(rows: list[list[str]]) -> list[str]:
    columns = zip(*rows, strict=True)
    return [" ".join(dict.fromkeys(filter(None, column))) for column in columns]
