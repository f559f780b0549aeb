"""The SQL that counts the values of fields over what a scope may see and a filter admits.

One statement counts all fields: the passages are read once, folded to their documents, and every field
is counted from there. Fields of the passage itself are counted from the passages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from search.retrieval.fields import Field, Kind
from search.retrieval.searchable import Searchable


@dataclass(frozen=True, slots=True)
class Window:
    """Which values are wanted of each field, the most frequent first."""

    limit: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Way:
    """How a kind of field is counted: what is kept of it for a document or passage, as a column; the
    values in the column; and whether there is one."""

    held: str
    values: str
    present: str


_ENTRIES = "ARRAY(SELECT DISTINCT entry::text FROM unnest({0}) entry WHERE entry <> '')"
_SCALARS = (
    "ARRAY(SELECT DISTINCT entry FROM jsonb_path_query({0}, %s::jsonpath) entry "
    "WHERE jsonb_typeof(entry) IN ('string', 'number', 'boolean') AND entry <> '\"\"')"
)
# A moment is told in UTC, as everything else is that the API says of times.
_MONTH = "(SELECT to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM'))"
_WAYS = {
    Kind.TEXT: _Way("({0})::text", "(SELECT {0})", "{0} <> ''"),
    Kind.LIST: _Way(_ENTRIES, "unnest({0})", "{0} <> '{{}}'"),
    Kind.METADATA: _Way(_SCALARS, "unnest({0})", "{0} <> '{{}}'"),
    Kind.TIME: _Way("{0}", _MONTH, "true"),
}
_OF_DOCUMENTS = (
    "SELECT value, count(*) AS documents, sum(chunks) AS chunks "
    "FROM document, LATERAL {values} each(value) WHERE {present} GROUP BY value"
)
_OF_PASSAGES = (
    "SELECT value, count(*) AS documents, sum(chunks) AS chunks FROM ("
    "SELECT value, count(*) AS chunks FROM passage, LATERAL {values} each(value) WHERE {present} "
    "GROUP BY value, document_id) by_document GROUP BY value"
)
_ORDER = "documents DESC, chunks DESC, value{collation}"
_VALUES = f"""jsonb_build_object(
  'values', (SELECT COALESCE(jsonb_agg(jsonb_build_object(
      'value', value, 'documents', documents, 'chunks', chunks) ORDER BY {_ORDER}), '[]')
    FROM (SELECT * FROM {{counted}} ORDER BY {_ORDER} LIMIT %s OFFSET %s) shown),
  'distinct', (SELECT count(*) FROM {{counted}}),
  'documents', ({{holders}}){{numbers}})"""
_NUMBER = "CASE WHEN jsonb_typeof(value) = 'number' THEN (value #>> '{{}}')::numeric END"
_NUMBERS = f""",
  'min', (SELECT min({_NUMBER}) FROM {{counted}}), 'max', (SELECT max({_NUMBER}) FROM {{counted}})"""
_MONTHS = """jsonb_build_object(
  'min', (SELECT min({held}) FROM document), 'max', (SELECT max({held}) FROM document),
  'months', (SELECT COALESCE(jsonb_agg(jsonb_build_object(
      'value', value, 'documents', documents, 'chunks', chunks) ORDER BY value), '[]') FROM {counted}))"""


def count_values(
    searchable: Searchable, fields: Sequence[Field], window: Window
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """`documents` and `chunks` in all, and what was counted of each field, in the order of the fields."""
    statement = _Statement(searchable, fields, window)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        documents, chunks, *counted = cursor.fetchone()
    return {"documents": documents, "chunks": int(chunks)}, [json.loads(one) for one in counted]


class _Statement:
    def __init__(self, searchable: Searchable, fields: Sequence[Field], window: Window) -> None:
        self._window = window
        self._fields = [(f"f{n}", field) for n, field in enumerate(fields)]
        passage, of_passage = self._passage(searchable)
        document, of_document = self._document(searchable.scope.tenant_id)
        counted = [
            f"counted_{name} AS ({self._counted(name, field)})" for name, field in self._fields
        ]
        answers = [self._answer(name, field) for name, field in self._fields]
        self.sql = (
            f"WITH passage AS MATERIALIZED ({passage}), document AS MATERIALIZED ({document}), "
            + "".join(f"{one}, " for one in counted)
            + "whole AS (SELECT count(*) AS documents, COALESCE(sum(chunks), 0) AS chunks FROM document) "
            + ", ".join(["SELECT documents, chunks", *(sql for sql, _ in answers)])
            + " FROM whole"
        )
        shown = [value for _, values in answers for value in values]
        self.parameters = [*of_passage, *of_document, *shown]

    def _passage(self, searchable: Searchable) -> tuple[str, list[Any]]:
        source, where, parameters = searchable.sql()
        columns, held = self._columns(on_chunk=True)
        return f"SELECT c.document_id{columns} FROM {source} WHERE {where}", [*held, *parameters]

    def _document(self, tenant_id: UUID) -> tuple[str, list[Any]]:
        columns, held = self._columns(on_chunk=False)
        sql = (
            f"SELECT d.id, chunks{columns} FROM (SELECT document_id, count(*) AS chunks FROM passage "
            "GROUP BY document_id) counted JOIN knowledge_document d "
            "ON d.tenant_id = %s AND d.id = document_id"
        )
        return sql, [*held, tenant_id]

    def _columns(self, *, on_chunk: bool) -> tuple[str, list[str]]:
        sql, parameters = "", []
        for name, field in self._fields:
            if field.on_chunk == on_chunk:
                sql += f", {_WAYS[field.kind].held.format(field.sql)} AS {name}"
                parameters += [f"{field.jsonpath}[*]"] if field.kind is Kind.METADATA else []
        return sql, parameters

    def _counted(self, name: str, field: Field) -> str:
        grouped, way = (_OF_PASSAGES if field.on_chunk else _OF_DOCUMENTS), _WAYS[field.kind]
        return grouped.format(values=way.values.format(name), present=way.present.format(name))

    def _answer(self, name: str, field: Field) -> tuple[str, list[int]]:
        counted = f"counted_{name}"
        if field.kind is Kind.TIME:
            return _MONTHS.format(held=name, counted=counted), []
        typed = field.kind is Kind.METADATA
        count, rows = ("DISTINCT document_id", "passage") if field.on_chunk else ("*", "document")
        present = _WAYS[field.kind].present.format(name)
        holders = f"SELECT count({count}) FROM {rows} WHERE {present}"
        sql = _VALUES.format(
            counted=counted,
            holders=holders,
            numbers=_NUMBERS.format(counted=counted) if typed else "",
            collation="" if typed else ' COLLATE "C"',
        )
        return sql, [self._window.limit, self._window.offset]
