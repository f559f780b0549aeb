"""One comparison of the filter language as SQL: what each operator means on each kind of field.

Every expression is true or false, never null, and free of wrappings that keep an index from
answering it. docs/search.md says the meanings in plain words; tests compare them with plain Python.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from search.retrieval.fields import Field, Kind, is_storable

OPERATORS = (
    "eq",
    "ne",
    "in",
    "not_in",
    "contains",
    "starts_with",
    "gt",
    "gte",
    "lt",
    "lte",
    "exists",
)
MAX_VALUES = 1000  # of one `in`
_ORDER = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OPPOSITE = {"ne": "eq", "not_in": "in"}
# Collations are named, so that every installation answers alike, whatever its locale.
_FOLDED = "casefold({} COLLATE pg_unicode_fast)"
_PATTERNS = {"contains": "%{}%", "starts_with": "{}%"}
# A date or time as ISO 8601 writes it; the same expression is run by Python and by PostgreSQL.
ISO_TIME = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    "(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?)?$"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A SQL expression over `c` and `d` with its parameters; always true or false, never null.

    Without `on_chunk` all passages of a document agree, so the documents can be found first.
    """

    sql: str
    parameters: tuple[Any, ...] = ()
    on_chunk: bool = False
    on_document: bool = False


def compare(field: Field, operator: str, value: Any) -> Condition:
    """The comparison. Raises `ValueError` when the value or the operator does not suit the field."""
    build = _exists if operator == "exists" else _BUILDERS[field.kind]
    sql, parameters = build(field, operator, value)
    return Condition(sql, parameters, on_chunk=field.on_chunk, on_document=not field.on_chunk)


Sql = tuple[str, tuple[Any, ...]]


def _exists(field: Field, operator: str, value: Any) -> Sql:
    """Whether there is a value; null and empty texts and lists are none."""
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")  # noqa: TRY004 - caught as a fault of the input
    sql, parameters = {
        Kind.TEXT: (f"{field.sql} <> ''", ()),
        Kind.TIME: (f"({field.sql}) IS NOT NULL", ()),
        Kind.LIST: (f"EXISTS (SELECT 1 FROM unnest({field.sql}) entry WHERE entry <> '')", ()),
        Kind.METADATA: (
            f"{field.sql} @? %s::jsonpath",
            (f'{field.jsonpath} ? (@.type() != "null" && (@.type() != "string" || @ != ""))',),
        ),
    }[field.kind]
    return (f"({sql})" if value else f"(NOT {sql})"), parameters


def _text_field(field: Field, operator: str, value: Any) -> Sql:
    sql, parameters = _text(field.sql, operator, value)
    if field.name == "external_id" and operator in {"eq", "in"}:
        # Never false for what is searched; with it the unique index of external ids gives the answer.
        sql = f"({sql} AND d.replaces_id IS NULL)"
    return sql, parameters


def _text(expression: str, operator: str, value: Any) -> Sql:
    if operator in {"in", "not_in"}:
        negation = "NOT " if operator == "not_in" else ""
        values = [_string(item) for item in _items(value)]
        return f"({negation}{expression} = ANY(%s))", (values,)
    text = _string(value)
    if operator in _PATTERNS:
        pattern = _PATTERNS[operator].format(escape_like(text))
        return f"({_FOLDED.format(expression)} LIKE {_FOLDED.format('%s')})", (pattern,)
    if operator in _ORDER:
        return f'({expression} COLLATE "C" {_ORDER[operator]} %s)', (text,)
    return f"({expression} {'=' if operator == 'eq' else '<>'} %s)", (text,)


def _time(field: Field, operator: str, value: Any) -> Sql:
    if operator in _PATTERNS:
        raise ValueError(f"{operator} does not apply to a time.")
    if operator in {"in", "not_in"}:
        negation = "NOT " if operator == "not_in" else ""
        moments = [_moment(item) for item in _items(value)]
        return f"({negation}({field.sql}) = ANY(%s::timestamptz[]))", (moments,)
    sign = {"eq": "=", "ne": "<>", **_ORDER}[operator]
    return f"(({field.sql}) {sign} %s)", (_moment(value),)


def _list(field: Field, operator: str, value: Any) -> Sql:
    """A list matches when one of its entries does; `ne` and `not_in` when none does."""
    if operator in _OPPOSITE:
        sql, parameters = _list(field, _OPPOSITE[operator], value)
        return f"(NOT {sql})", parameters
    inner, parameters = _text("entry", operator, value)
    return f"EXISTS (SELECT 1 FROM unnest({field.sql}) entry WHERE {inner})", parameters


def _metadata(field: Field, operator: str, value: Any) -> Sql:
    """Values of one type compare; a list matches when one of its entries does."""
    if operator in _OPPOSITE:
        sql, parameters = _metadata(field, _OPPOSITE[operator], value)
        return f"(NOT {sql})", parameters
    if operator in _PATTERNS:
        return _any_text(field, *_text("(entry #>> '{}')", operator, value))
    if operator in _ORDER and isinstance(value, str):
        return _metadata_order(field, operator, _string(value))
    if operator in _ORDER and isinstance(value, bool):
        raise ValueError(f"{operator} does not apply to true and false.")
    if operator == "in":
        tests = [f"{field.jsonpath} == {_json_scalar(item)}" for item in _items(value)]
    else:
        tests = [f"{field.jsonpath} {_ORDER.get(operator, '==')} {_json_scalar(value)}"]
    # Only this form, with equality, is answered by the index of the metadata.
    joined = " || ".join(tests) or "1 == 0"
    return f"({field.sql} @? %s::jsonpath)", (f"$ ? ({joined})",)


def _metadata_order(field: Field, operator: str, text: str) -> Sql:
    """As times where both sides are ISO dates or times, else as texts."""
    entry, sign = "(entry #>> '{}')", _ORDER[operator]
    as_text = f'{entry} COLLATE "C" {sign} %s'
    if not is_iso_time(text):
        return _any_text(field, as_text, (text,))
    # The CASE keeps the cast away from texts that are no times.
    sql = (
        f"CASE WHEN {entry} ~ %s AND pg_input_is_valid({entry}, 'timestamptz') "
        f"THEN {entry}::timestamptz {sign} %s::timestamptz ELSE {as_text} END"
    )
    return _any_text(field, sql, (ISO_TIME, text, text))


def _any_text(field: Field, sql: str, parameters: tuple[Any, ...]) -> Sql:
    """Whether `sql` holds for one of the texts, as `entry`, at the field's path."""
    found = (
        f"EXISTS (SELECT 1 FROM jsonb_path_query({field.sql}, %s::jsonpath) entry "
        f"WHERE jsonb_typeof(entry) = 'string' AND {sql})"
    )
    return found, (f"{field.jsonpath}[*]", *parameters)


_BUILDERS: dict[Kind, Callable[[Field, str, Any], Sql]] = {
    Kind.TEXT: _text_field,
    Kind.TIME: _time,
    Kind.LIST: _list,
    Kind.METADATA: _metadata,
}


def is_iso_time(text: str) -> bool:
    """Whether the text is a date or time that exists. Without a zone it counts as UTC."""
    if not re.fullmatch(ISO_TIME, text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _json_scalar(value: Any) -> str:
    """The value as the JSON that a jsonpath compares with."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ValueError("Must be a finite number.")
        return repr(value)
    if not isinstance(value, str):
        raise ValueError("Must be a text, a number, true or false; exists finds missing values.")  # noqa: TRY004 - caught as a fault of the input
    return json.dumps(_string(value), ensure_ascii=False)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Must be a text.")  # noqa: TRY004 - caught as a fault of the input
    text = value.replace("\x00", "")  # as in everything that is stored
    if not is_storable(text):
        raise ValueError("Holds half of a character (an unpaired surrogate).")
    return text


def escape_like(text: str) -> str:
    """Text that LIKE takes literally."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("Must be a list.")  # noqa: TRY004 - caught as a fault of the input
    if len(value) > MAX_VALUES:
        raise ValueError(f"At most {MAX_VALUES} values.")
    return value


def _moment(value: Any) -> datetime:
    text = _string(value)
    try:
        moment = parse_datetime(text if len(text) > 10 else f"{text}T00:00:00")
    except ValueError:  # it is written like a time, but there is no such day or hour
        moment = None
    if moment is None:
        raise ValueError("Must be a time such as 2026-01-31T00:00:00Z.")
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=UTC)
