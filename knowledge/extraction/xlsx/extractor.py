"""Excel workbooks (.xlsx): every sheet with its name, tables with their header, values as shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

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
from knowledge.extraction.ooxml import RELATIONS_NAMESPACE, Package
from knowledge.extraction.xlsx.cells import (
    CellReader,
    CellStyles,
    Row,
    S,
    read_merges,
    read_shared_strings,
)
from knowledge.extraction.xlsx.extras import read_comments, read_drawings, read_persons
from knowledge.extraction.xlsx.tables import SheetWriter


@dataclass(frozen=True, slots=True)
class _Sheet:
    name: str
    part: str
    is_hidden: bool


class XlsxExtractor(Extractor):
    """A level-2 heading for each sheet, hidden ones marked; results of formulas, not formulas."""

    mime_types: ClassVar[frozenset[str]] = frozenset({
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
        "application/vnd.ms-excel.sheet.macroenabled.12",
        "application/vnd.ms-excel.template.macroenabled.12",
    })  # fmt: skip
    suffixes: ClassVar[frozenset[str]] = frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        """Read the file. Raises `ExtractionError`."""
        package = Package(source, limits)
        main = package.main_part("xl/workbook.xml")
        workbook = package.xml(main)
        if workbook is None:
            raise package.corrupt()
        builder = TextBuilder(limits)
        reader = CellReader(
            package,
            _shared_strings(package, main),
            CellStyles(_first_root(package, main, "styles", "xl/styles.xml")),
            from_1904=_counts_from_1904(workbook),
        )
        persons = read_persons(package, main)
        counter = _RowCounter(source.filename, limits)
        for sheet in _sheets(package, main, workbook):
            _write_sheet(package, builder, reader, counter, sheet, persons)
        if reader.formulas_without_result:
            builder.warn(
                f"{reader.formulas_without_result:,} formulas have no stored result and were left out. "
                "Open the file in a spreadsheet program and save it there."
            )
        if damage := package.damage_warning():
            builder.warn(damage)
        title, facts = package.facts()
        return builder.finish(
            Coverage("rows", counter.count, counter.count), title=title, metadata=facts
        )


class _RowCounter:
    """Counts the rows of all sheets and stops at the limit."""

    def __init__(self, filename: str, limits: Limits) -> None:
        self.count = 0
        self._filename = filename
        self._max_rows = limits.max_rows

    def counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The same rows, counted as they pass. Raises `ExtractionError` beyond the limit."""
        for row in rows:
            self.count += 1
            if self.count > self._max_rows:
                raise ExtractionError(
                    Fault.TOO_LARGE,
                    f"{self._filename} has more than {self._max_rows:,} rows. Split it into smaller files.",
                )
            yield row


def _write_sheet(
    package: Package,
    builder: TextBuilder,
    reader: CellReader,
    counter: _RowCounter,
    sheet: _Sheet,
    persons: dict[str, str],
) -> None:
    rows = counter.counted(reader.rows(sheet.part))
    first = next(rows, None)
    notes = [*read_drawings(package, sheet.part), *read_comments(package, sheet.part, persons)]
    if first is None and not notes:
        return
    builder.heading(f"{sheet.name} (hidden)" if sheet.is_hidden else sheet.name, 2)
    if first is not None:
        SheetWriter(builder, sheet.name, read_merges(package, sheet.part)).write(
            _chained(first, rows)
        )
    for note in notes:
        builder.paragraph(note, sheet=sheet.name)


def _chained(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _sheets(package: Package, main: str, workbook: etree._Element) -> Iterator[_Sheet]:
    relations = package.relations(main)
    nodes = list(workbook.iterfind(f"{S}sheets/{S}sheet"))
    found = 0
    for node in nodes:
        relation = relations.get(node.get(f"{RELATIONS_NAMESPACE}id", ""))
        if relation is not None and package.has(relation.target):
            found += 1
            yield _Sheet(
                node.get("name", ""), relation.target, node.get("state", "visible") != "visible"
            )
    if not found:
        for part in sorted(package.names("xl/worksheets/sheet")):
            yield _Sheet(part.rpartition("/")[2].removesuffix(".xml"), part, is_hidden=False)


def _shared_strings(package: Package, main: str) -> list[str]:
    part = next(iter(package.related(main, "sharedStrings")), "xl/sharedStrings.xml")
    return read_shared_strings(package, part)


def _first_root(package: Package, main: str, kind: str, fallback: str) -> etree._Element | None:
    return package.xml(next(iter(package.related(main, kind)), fallback))


def _counts_from_1904(workbook: etree._Element) -> bool:
    properties = workbook.find(f"{S}workbookPr")
    return properties is not None and properties.get("date1904") in {"1", "true"}
