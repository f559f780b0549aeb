"""Rows of cells out of a worksheet, one at a time, whatever its size.

Read with lxml and not with openpyxl's reader, which refuses Strict workbooks and workbooks of which
a style, filter or pivot table is malformed, and loses the merged cells when it streams. How a number
format is to be understood is still asked of openpyxl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import regex
from lxml import etree

from knowledge.extraction.ooxml import Package
from knowledge.extraction.xlsx.formats import GENERAL, NumberFormat, parse_format, show_number

S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_CELL, _VALUE, _FORMULA, _INLINE = f"{S}c", f"{S}v", f"{S}f", f"{S}is"
_TEXT, _READING_AID = f"{S}t", f"{S}rPh"
_REFERENCE = regex.compile(r"([A-Za-z]{1,3})(\d*)")
_ESCAPED = regex.compile(r"_x([0-9A-Fa-f]{4})_")
_MERGED = regex.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]+\d+):([A-Z]+\d+)[\"']")


class Cell(NamedTuple):
    """A cell as shown; `is_text` is false for numbers, dates, truth values and errors."""

    text: str
    is_text: bool
    is_bold: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The filled cells of a row by column, counting from 1; `number` is what Excel shows."""

    number: int
    cells: Mapping[int, Cell]


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged range; only its first cell has a value."""

    top: int
    left: int
    bottom: int
    right: int


class CellReader:
    """Reads the sheets of one workbook. Counts the formulas whose result is not stored."""

    def __init__(
        self, package: Package, shared: Sequence[str], styles: CellStyles, *, from_1904: bool
    ) -> None:
        self.formulas_without_result = 0
        self._package = package
        self._shared = shared
        self._styles = styles
        self._from_1904 = from_1904

    def rows(self, part: str) -> Iterator[Row]:
        """The rows that have a filled cell. Rows and cells without a position follow the one before."""
        last = 0
        for node in self._package.iter_xml(part, f"{S}row"):
            last = _whole(node.get("r"), last + 1)
            cells = self._cells(node)
            if cells:
                yield Row(last, cells)

    def _cells(self, row: etree._Element) -> dict[int, Cell]:
        cells: dict[int, Cell] = {}
        column = 0
        for node in row:
            if node.tag != _CELL:
                continue
            letters = node.get("r", "").rstrip("0123456789")
            column = _column_of_letters(letters) or column + 1
            style = _whole(node.get("s"), 0)
            text, is_text = self._value(node, style)
            if text.strip():
                cells[column] = Cell(text, is_text, self._styles.is_bold(style))
        return cells

    def _value(self, node: etree._Element, style: int) -> tuple[str, bool]:
        kind = node.get("t", "n")
        if kind == "inlineStr":
            inline = node.find(_INLINE)
            return (string_text(inline) if inline is not None else ""), True
        stored = node.findtext(_VALUE)
        if not stored:
            # An empty text is a result too.
            self.formulas_without_result += kind == "n" and node.find(_FORMULA) is not None
            return "", False
        if kind in {"s", "str"}:
            return (self._shared_text(stored) if kind == "s" else unescape(stored)), True
        if kind == "n":
            number_format = self._styles.number_format(style)
            return show_number(stored, number_format, from_1904=self._from_1904), False
        return _shown_value(kind, stored), False

    def _shared_text(self, stored: str) -> str:
        index = _whole(stored, -1)
        return self._shared[index] if 0 <= index < len(self._shared) else ""


class CellStyles:
    """The number format and weight of each cell style."""

    def __init__(self, root: etree._Element | None) -> None:
        codes: dict[int, str] = {}
        fonts: list[bool] = []
        self._styles: list[tuple[int, int]] = []
        if root is not None:
            for node in root.iterfind(f"{S}numFmts/{S}numFmt"):
                codes[_whole(node.get("numFmtId"), -1)] = node.get("formatCode", "")
            fonts = [_is_bold(node) for node in root.iterfind(f"{S}fonts/{S}font")]
            for node in root.iterfind(f"{S}cellXfs/{S}xf"):
                self._styles.append(
                    (_whole(node.get("numFmtId"), 0), _whole(node.get("fontId"), -1))
                )
        self._bold = [0 <= font < len(fonts) and fonts[font] for _, font in self._styles]
        self._formats = [parse_format(codes.get(code), code) for code, _ in self._styles]

    def number_format(self, style: int) -> NumberFormat:
        """The format of a style; the general one where the file does not say."""
        return self._formats[style] if 0 <= style < len(self._formats) else GENERAL

    def is_bold(self, style: int) -> bool:
        """Whether the style's font is bold."""
        return 0 <= style < len(self._bold) and self._bold[style]


def read_shared_strings(package: Package, part: str) -> list[str]:
    """The table of texts that cells refer to by number."""
    return [string_text(node) for node in package.iter_xml(part, f"{S}si")]


def read_merges(package: Package, part: str) -> list[Merge]:
    """The merged ranges. They stand behind the cells but are needed before them."""
    data = package.read(part) or b""
    merges = []
    for match in _MERGED.finditer(data, max(data.rfind(b"sheetData"), 0)):
        first, last = match[1].decode(), match[2].decode()
        merges.append(Merge(_row_of(first), column_of(first), _row_of(last), column_of(last)))
    return merges


def string_text(node: etree._Element) -> str:
    """The text of a string with its formatted runs, without the reading aids of Japanese names."""
    if len(node) == 1 and node[0].tag == _TEXT:
        return unescape(node[0].text or "")
    parts = [child for child in node.iter(_TEXT) if child.getparent().tag != _READING_AID]
    return unescape("".join(part.text or "" for part in parts))


def unescape(text: str) -> str:
    """Excel writes characters that XML has no place for as `_x000D_`."""
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def column_of(reference: str) -> int:
    """The column number of a reference such as `AB12`; 0 where there is none."""
    match = _REFERENCE.match(reference)
    return _column_of_letters(match[1]) if match else 0


@lru_cache(maxsize=20_000)  # there are at most 16,384 columns
def _column_of_letters(letters: str) -> int:
    column = 0
    for letter in letters.upper():
        column = column * 26 + ord(letter) - ord("A") + 1
    return column


def _shown_value(kind: str, stored: str) -> str:
    """Truth values, the dates of Strict files, and errors such as `#N/A`."""
    if kind == "b":
        return "TRUE" if stored.strip() == "1" else "FALSE"
    if kind == "d":
        return stored.removesuffix("T00:00:00").replace("T", " ")
    return stored


def _row_of(reference: str) -> int:
    match = _REFERENCE.match(reference)
    return _whole(match[2], 0) if match else 0


def _is_bold(font: etree._Element) -> bool:
    bold = font.find(f"{S}b")
    return bold is not None and bold.get("val", "1") not in {"0", "false"}


def _whole(text: str | None, default: int) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        return default
