"""Nested data (JSON, YAML values) → readable blocks: `path: value` lines and tables of records.

Values are built of `dict`, `list` and scalars. Nothing here recurses over the depth of the data
without a bound, and shared parts are paid for each time they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.extraction.base import ExtractionError, Fault, Limits
from knowledge.extraction.builder import TextBuilder

Value = object
_LONG_TEXT = 200  # a longer string reads better as a paragraph of its own
_LONGEST_ROW = 1000  # of many short values
_LONGEST_CELL = 300
_MOST_COLUMNS = 60
_LINES_A_BLOCK = 40
_SHARED_KEYS = 0.6  # of a record's fields, for records to be one table
_ROOT = "value"


@dataclass(slots=True)
class Flattener:
    """Adds values to a builder and counts those that have text."""

    builder: TextBuilder
    limits: Limits
    shown: int = 0
    _lines: list[str] = field(default_factory=list)
    _line: int | None = None

    def add(self, value: Value, *, path: str = "", line: int | None = None) -> None:
        """Adds one whole document or record."""
        self._line = line
        self._visit(value, path, 0)
        self._flush()

    def add_records(self, records: Sequence[Value], lines: Sequence[int | None] = ()) -> None:
        """Adds the records of a list: as a table when they are alike, else one by one."""
        places = lines or [None] * len(records)
        columns = table_columns(records)
        if not columns:
            for number, (record, line) in enumerate(zip(records, places, strict=True), start=1):
                path = "" if isinstance(record, Mapping) else f"[{number}]"
                self.add(record, path=path, line=line)
            return
        self.builder.table_header(columns)
        pairs = zip(records, places, strict=True)
        for number, (record, line) in enumerate(pairs, start=1):
            flat = dict(_flat_fields(record)) if isinstance(record, Mapping) else {}
            cells = [flat.get(column, "") for column in columns]
            self.builder.table_row(cells, row=number, line=line)
            self.shown += sum(map(bool, cells))
        self.builder.end_table()

    def _visit(self, value: Value, path: str, depth: int) -> None:
        if depth > self.limits.max_depth:
            raise too_deep(self.limits)
        if isinstance(value, Mapping):
            self._visit_mapping(value, path, depth)
        elif isinstance(value, list):
            self._visit_list(value, path, depth)
        else:
            self._visit_text(scalar_text(value), path)

    def _visit_mapping(self, mapping: Mapping[Value, Value], path: str, depth: int) -> None:
        nested = False
        for key, value in mapping.items():
            # Values after a nested part start a new block: they belong to the outer one again.
            if nested != _is_nested(value):
                nested = not nested
                self._flush()
            self._visit(value, f"{path}.{key}" if path else str(key), depth + 1)
            if nested:
                self._flush()

    def _visit_list(self, items: list[Value], path: str, depth: int) -> None:
        texts = [scalar_text(item) for item in items if not isinstance(item, Mapping | list)]
        if len(texts) == len(items):
            self._visit_scalars([text for text in texts if text], path)
            return
        self._flush()
        if table_columns(items):
            self.builder.paragraph(f"{path}:" if path else "", line=self._line)
            self.add_records(items)
            return
        for number, item in enumerate(items, start=1):
            self._visit(item, f"{path}[{number}]", depth + 1)
            if _is_nested(item):
                self._flush()

    def _visit_scalars(self, texts: list[str], path: str) -> None:
        if any(len(text) > _LONG_TEXT or "\n" in text for text in texts):
            self._flush()
            self.builder.paragraph(f"{path}:" if path else "", line=self._line)
            for text in texts:
                self.builder.list_item(text, line=self._line)
            self.shown += len(texts)
            return
        self.shown += len(texts)
        for part in _parts(texts):
            self._lines.append(f"{path}: {part}" if path else part)
            if len(part) > _LONG_TEXT:
                self._flush()

    def _visit_text(self, text: str, path: str) -> None:
        if not text.strip():
            return
        self.shown += 1
        if len(text) > _LONG_TEXT or "\n" in text:
            self._flush()
            self.builder.paragraph(f"{path or _ROOT}:\n{text}", line=self._line)
            return
        self._lines.append(f"{path}: {text}" if path else text)
        if len(self._lines) >= _LINES_A_BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._lines:
            return
        self.builder.paragraph("\n".join(self._lines), line=self._line)
        self._lines.clear()


def _parts(texts: list[str]) -> Iterator[str]:
    """The texts in rows of a readable length."""
    row: list[str] = []
    size = 0
    for text in texts:
        row.append(text)
        size += len(text) + 2
        if size > _LONGEST_ROW:
            yield ", ".join(row)
            row, size = [], 0
    if row:
        yield ", ".join(row)


def _is_nested(value: Value) -> bool:
    """Whether a value has parts that are not scalars, or parts with names."""
    if isinstance(value, list):
        return any(isinstance(item, Mapping | list) for item in value)
    return isinstance(value, Mapping)


def table_columns(records: Sequence[Value]) -> list[str]:
    """The columns of records that are alike and short; empty when they are not a table."""
    if len(records) < 2 or not all(isinstance(record, Mapping) for record in records):
        return []
    columns: dict[str, None] = {}
    fields = 0
    for record in records:
        assert isinstance(record, Mapping)  # noqa: S101 - for the type checker, checked above
        if any(_is_bulky(value) for value in record.values()):
            return []
        names = [name for name, _ in _flat_fields(record)]
        fields += len(names)
        columns.update(dict.fromkeys(names))
        if len(columns) > _MOST_COLUMNS:
            return []
    alike = fields >= _SHARED_KEYS * len(columns) * len(records)
    return list(columns) if alike and columns else []


def _is_bulky(value: Value) -> bool:
    """Whether a value does not fit a table cell."""
    if isinstance(value, Mapping):
        return any(isinstance(part, Mapping | list) or _is_bulky(part) for part in value.values())
    if isinstance(value, list):
        return any(isinstance(part, Mapping | list) for part in value) or (
            sum(len(scalar_text(part)) for part in value) > _LONGEST_CELL
        )
    return len(scalar_text(value)) > _LONGEST_CELL


def _flat_fields(record: Mapping[Value, Value]) -> Iterator[tuple[str, str]]:
    """The cells of a record; a flat object inside gives `outer.inner` columns."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            for inner, part in value.items():
                yield f"{key}.{inner}", scalar_text(part)
        elif isinstance(value, list):
            yield str(key), ", ".join(filter(None, map(scalar_text, value)))
        else:
            yield str(key), scalar_text(value)


def scalar_text(value: Value) -> str:
    """A scalar as the source writes it; null is nothing."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def too_deep(limits: Limits) -> ExtractionError:
    """The refusal of data nested beyond the limit."""
    return ExtractionError(
        Fault.TOO_LARGE,
        f"The data is nested more than {limits.max_depth} levels deep, which no reader could "
        "follow. Flatten it, or upload the part that matters.",
    )
