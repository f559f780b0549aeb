"""Tables in a sheet: titles above, the header row or rows, and the data under them.

Empty rows set regions apart. The beginning of each region is looked at, the rest streams through.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.xlsx.cells import Cell, Merge, Row

_SAMPLE_ROWS = 200
_MAX_TITLES = 20
_MAX_HEADER_ROWS = 4
_LONG_TEXT = 100
_MAX_WAITING = 2
_MAX_GAP = 3


class SheetWriter:
    """Writes the rows of one sheet as titles, table headers and table rows."""

    def __init__(self, builder: TextBuilder, sheet: str, merges: Sequence[Merge]) -> None:
        self._builder = builder
        self._sheet = sheet
        self._merges = merges
        self._columns: list[int] = []
        self._known: frozenset[int] = frozenset()
        self._has_table = False
        # Names that stand alone; an empty row often parts them from the data under them.
        self._waiting: list[Row] = []

    def write(self, rows: Iterable[Row]) -> None:
        """Write all rows; they come in order and only those with filled cells."""
        for sample, rest in _regions(iter(rows)):
            self._region(sample)
            for row in rest:
                self._row(row)
        self._flush(self._waiting)

    def _region(self, rows: list[Row]) -> None:
        titles = _count_titles(rows)
        waiting, self._waiting = self._waiting, []
        if waiting and not titles and _belong_together(waiting, rows):
            rows = [*waiting, *rows]
        else:
            self._flush(waiting)
        self._paragraphs(rows[:titles])
        rows = rows[titles:]
        if rows and len(rows) <= _MAX_WAITING and all(map(_is_row_of_names, rows)):
            self._waiting = rows
        elif rows:
            self._table(rows)

    def _flush(self, waiting: list[Row]) -> None:
        if len(waiting) > 1:
            self._table(waiting)
        else:
            self._paragraphs(waiting)

    def _table(self, rows: list[Row]) -> None:
        columns = sorted({column for row in rows for column in row.cells})
        fits = self._has_table and set(columns) <= set(self._columns)
        headers = self._count_headers(rows, is_first=not fits)
        is_lone = len(rows) == 1 and not fits
        if is_lone or (len(columns) == 1 and _is_running_text(rows)):
            self._paragraphs(rows)
            return
        if headers or not fits:
            self._columns, self._known = columns, frozenset(columns)
        if headers:
            self._header(rows[:headers])
        elif not fits:
            # A table without names: its columns' letters tell as little, so the header stays empty.
            self._builder.table_header([""] * len(columns), sheet=self._sheet)
        self._has_table = True
        for row in rows[headers:]:
            self._row(row)

    def _count_headers(self, rows: Sequence[Row], *, is_first: bool) -> int:
        """How many rows on top name the columns. A region that continues a table needs a clear sign."""
        first, below = rows[0], rows[1:]
        if not _can_be_header(first) or not (below or is_first):
            return 0
        if (
            not is_first
            and not (_is_bold(first) and not _is_bold(below[0]))
            and not _differs(first, below)
        ):
            return 0
        count = 1
        while (
            count < min(_MAX_HEADER_ROWS, len(rows) - 1)
            and self._reaches_down(rows[count - 1])
            and _can_be_header(rows[count])
        ):
            count += 1
        return count

    def _reaches_down(self, row: Row) -> bool:
        """Whether merged cells show that the header goes on in the next row."""
        return any(
            merge.top <= row.number <= merge.bottom
            and (merge.bottom > row.number or (merge.right > merge.left and len(row.cells) > 1))
            for merge in self._merges
        )

    def _header(self, rows: Sequence[Row]) -> None:
        names: dict[int, list[str]] = {column: [] for column in self._columns}
        for row in rows:
            for column, cell in row.cells.items():
                for covered in self._covered(row.number, column, is_last=row is rows[-1]):
                    if covered in names and cell.text not in names[covered]:
                        names[covered].append(cell.text)
        cells = [" ".join(names[column]) for column in self._columns]
        self._builder.table_header(cells, sheet=self._sheet, row=rows[-1].number)

    def _covered(self, row: int, column: int, *, is_last: bool) -> range:
        """The columns that a header cell stands above."""
        if not is_last:
            for merge in self._merges:
                if merge.top <= row <= merge.bottom and merge.left == column:
                    return range(column, merge.right + 1)
        return range(column, column + 1)

    def _row(self, row: Row) -> None:
        if not self._has_table:
            self._paragraphs([row])
            return
        columns = self._columns
        if not row.cells.keys() <= self._known:
            columns = sorted({*columns, *row.cells})
        cells = [row.cells[column].text if column in row.cells else "" for column in columns]
        self._builder.table_row(cells, sheet=self._sheet, row=row.number)

    def _paragraphs(self, rows: Iterable[Row]) -> None:
        for row in rows:
            text = " ".join(cell.text for _, cell in sorted(row.cells.items()))
            self._builder.paragraph(text, sheet=self._sheet)


def _regions(rows: Iterator[Row]) -> Iterator[tuple[list[Row], Iterator[Row]]]:
    """Runs of rows without an empty one between them: the first rows, and the others as a stream."""
    pending = next(rows, None)
    while pending is not None:
        sample = [pending]
        pending = None
        for row in rows:
            if row.number > sample[-1].number + 1:
                pending = row
                break
            sample.append(row)
            if len(sample) == _SAMPLE_ROWS:
                break
        rest = _Rest(rows, sample[-1].number) if pending is None else None
        yield sample, iter(rest or ())
        if rest is not None:
            pending = rest.following


class _Rest:
    """The rest of a region; `following` is the row behind the gap that ended it."""

    def __init__(self, rows: Iterator[Row], last: int) -> None:
        self.following: Row | None = None
        self._rows = rows
        self._last = last

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            if row.number > self._last + 1:
                self.following = row
                return
            self._last = row.number
            yield row


def _count_titles(rows: Sequence[Row]) -> int:
    """How many rows stand above the header: those with far fewer cells than the table has."""
    widths = Counter(len(row.cells) for row in rows)
    usual = max(widths, key=lambda width: (widths[width], width))
    if usual < 2:
        usual = max(widths)
        if usual < 2 or widths[usual] < 2:
            return 0
    for index, row in enumerate(rows[:_MAX_TITLES]):
        if len(row.cells) >= max(2, math.ceil(usual / 2)):
            return index
    return 0


def _can_be_header(row: Row) -> bool:
    """Whether all cells are names; years name columns too."""
    return all(cell.is_text or _is_year(cell) for cell in row.cells.values()) and any(
        cell.is_text for cell in row.cells.values()
    )


def _is_row_of_names(row: Row) -> bool:
    return len(row.cells) > 1 and _can_be_header(row)


def _belong_together(names: Sequence[Row], rows: Sequence[Row]) -> bool:
    """Whether the rows are the data of the names above: near, as wide, and under them."""
    columns = {column for row in names for column in row.cells}
    used = {column for row in rows for column in row.cells}
    return (
        rows[0].number - names[-1].number <= _MAX_GAP
        and (len(names) == 1 or _differs(names[-1], rows))
        and len(used) > 1
        and len(used & columns) * 2 > len(columns)
    )


def _is_year(cell: Cell) -> bool:
    return cell.text.isdigit() and 1900 <= int(cell.text) <= 2100


def _is_bold(row: Row) -> bool:
    return all(cell.is_bold for cell in row.cells.values())


def _differs(first: Row, below: Sequence[Row]) -> bool:
    """Whether there are values under the names of the first row."""
    return any(
        not cell.is_text and column in first.cells and first.cells[column].is_text
        for row in below[:5]
        for column, cell in row.cells.items()
    )


def _is_running_text(rows: Sequence[Row]) -> bool:
    return len(rows) <= 3 or any(
        len(cell.text) > _LONG_TEXT for row in rows for cell in row.cells.values()
    )
