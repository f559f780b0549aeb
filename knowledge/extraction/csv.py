"""Delimited text: any delimiter, any encoding, titles above the header, files without a header."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

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
from knowledge.extraction.decoding import decode

_DELIMITERS = ",;\t|"
_BY_SUFFIX = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_SAMPLE_ROWS = 200
_SAMPLE_CHARS = 200_000
_TITLE_ROWS = 20  # where a header may be
_SWALLOWED_LINES = 200  # a cell of more lines comes from a quote that never closes
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,' \u00a0]*(?:[eE][-+]?\d+)?\s?[%€$)]?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T].*)?")


@dataclass(frozen=True, slots=True)
class _Row:
    number: int  # as a spreadsheet would show it
    line: int  # where it starts in the file
    cells: list[str]


class CsvExtractor(Extractor):
    """CSV, TSV and other delimited text. Cells are kept as written: `NA`, `007` and `4,95` too."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"text/csv", "text/tab-separated-values"})
    suffixes: ClassVar[frozenset[str]] = frozenset({".csv", ".tsv", ".tab", ".psv"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        text = decoded.text.replace("\x00", " ")
        delimiter = _stated_delimiter(text)
        skipped = 1 if delimiter else 0
        delimiter = delimiter or find_delimiter(text, PurePath(source.filename).suffix.lower())
        rows = _read(text, delimiter, builder)[skipped:]
        if len(rows) > limits.max_rows:
            raise ExtractionError(
                Fault.TOO_LARGE,
                f"{source.filename} has {len(rows):,} rows; at most {limits.max_rows:,} are read. "
                "Split it into smaller files.",
            )
        _add_rows(builder, rows)
        filled = sum(any(cell.strip() for cell in row.cells) for row in rows)
        return builder.finish(Coverage("rows", filled, filled))


def find_delimiter(text: str, suffix: str = "") -> str:
    """The delimiter under which the rows agree best on their number of columns."""
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    preferred = _BY_SUFFIX.get(suffix, ",")
    scores = {mark: _consistency(sample, mark) for mark in _DELIMITERS}
    return max(_DELIMITERS, key=lambda mark: (scores[mark], mark == preferred))


def _stated_delimiter(text: str) -> str:
    """Excel's own first line, `sep=;`."""
    match = re.match(r'"?sep=(.)"?\n', text, re.IGNORECASE)
    return match[1] if match else ""


def _consistency(sample: str, delimiter: str) -> float:
    widths = Counter[int]()
    for row in _parse(sample, delimiter):
        if any(cell.strip() for cell in row.cells):
            widths[len(row.cells)] += 1
        if row.number >= _SAMPLE_ROWS:
            break
    wide = [(count, width) for width, count in widths.items() if width > 1]
    if not wide:
        return 0.0
    count, width = max(wide)
    return count / widths.total() + min(math.log2(width), 4) / 10


def _parse(text: str, delimiter: str, *, quoted: bool = True) -> Iterator[_Row]:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )
    line = 1
    for number, cells in enumerate(reader, start=1):
        yield _Row(number, line, cells)
        line = reader.line_num + 1


def _read(text: str, delimiter: str, builder: TextBuilder) -> list[_Row]:
    rows = list(_parse(text, delimiter))
    swallowed = any(
        cell.count("\n") > _SWALLOWED_LINES and cell.count(delimiter) > _SWALLOWED_LINES
        for row in rows
        for cell in row.cells
    )
    if swallowed:
        builder.warn("A quotation mark is never closed; quotation marks are read as plain signs.")
        rows = list(_parse(text, delimiter, quoted=False))
    return rows


def _add_rows(builder: TextBuilder, rows: Sequence[_Row]) -> None:
    filled = [row for row in rows if any(cell.strip() for cell in row.cells)]
    body = filled[_count_titles(filled) :]
    for row in filled[: len(filled) - len(body)]:
        builder.paragraph(" ".join(filter(None, map(str.strip, row.cells))), line=row.line)
    width = _last_used_column(body)
    if body and _is_header(body):
        head, *body = body
        builder.table_header(_fit(head.cells, width), row=head.number, line=head.line)
    for row in body:
        builder.table_row(_fit(row.cells, width), row=row.number, line=row.line)


def _last_used_column(rows: Sequence[_Row]) -> int:
    """How many columns hold something, so that trailing delimiters make no empty columns."""
    used = 0
    for row in rows:
        for column in range(len(row.cells), used, -1):
            if row.cells[column - 1].strip():
                used = column
                break
    return used


def _fit(cells: Sequence[str], width: int) -> list[str]:
    return [*cells[:width], *[""] * (width - len(cells))]


def _filled(row: _Row) -> int:
    return sum(bool(cell.strip()) for cell in row.cells)


def _count_titles(rows: Sequence[_Row]) -> int:
    """How many rows stand above the header: those with far fewer cells than the table has."""
    widths = Counter(_filled(row) for row in rows[:_SAMPLE_ROWS])
    if not widths:
        return 0
    usual = max(widths, key=lambda width: (widths[width], width))
    if usual < 2:
        return 0
    for index, row in enumerate(rows[:_TITLE_ROWS]):
        if _filled(row) >= max(2, math.ceil(usual / 2)):
            return index
    return 0


def _is_header(rows: Sequence[_Row]) -> bool:
    """Whether the first row names the columns and is not data like the rows below it."""
    first, rest = rows[0].cells, rows[1:_SAMPLE_ROWS]
    if not rest:
        return _filled(rows[0]) > 1 and not any(map(_is_value, first))
    if any(_is_value(cell) and not _YEAR.fullmatch(cell.strip()) for cell in first):
        return False
    values = [cell for cell in first if _is_value(cell)]
    if values and len(values) == len([cell for cell in first if cell.strip()]):
        return False
    # A name seen again and again below is a value: `EU;DE` over `EU;FR`.
    repeated = sum(
        bool(cell.strip()) and sum(_cell(row, column) == cell for row in rest) > len(rest) / 5
        for column, cell in enumerate(first)
    )
    return repeated * 2 <= len(first)


def _cell(row: _Row, column: int) -> str:
    return row.cells[column] if column < len(row.cells) else ""


def _is_value(cell: str) -> bool:
    text = cell.strip()
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))
