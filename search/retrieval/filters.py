"""The filter language of the API, compiled to SQL over `c` (chunk) and `d` (document)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from config.errors import FieldError, InvalidInputError

_MAX_DEPTH = 10
_MAX_CONDITIONS = 100
_TEXT = {
    "title": "d.title",
    "source": "d.source",
    "source_uri": "d.source_uri",
    "external_id": "d.external_id",
    "content_type": "d.content_type",
    "language": "c.language",
    "author": "d.author",
}
_TIME = {
    "created_at": "COALESCE(d.source_created_at, d.created_at)",
    "updated_at": "COALESCE(d.source_updated_at, d.updated_at)",
}
_LISTS = {"heading": "c.heading_path", "breadcrumbs": "d.breadcrumbs"}
_COMPARE = {"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
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
FIELDS = (*_TEXT, *_TIME, *_LISTS, "metadata.<path>")


@dataclass(frozen=True, slots=True)
class Condition:
    """A SQL expression with its parameters; always true or false, never null."""

    sql: str
    parameters: tuple[Any, ...] = ()


def compile_filter(tree: Mapping[str, Any] | None) -> Condition | None:
    """The condition of a filter. Raises `InvalidInputError` naming the unknown field or operator."""
    if not tree:
        return None
    return _Compiler().compile(tree, "filter", 0)


class _Compiler:
    def __init__(self) -> None:
        self._count = 0

    def compile(self, node: Any, path: str, depth: int) -> Condition:
        self._count += 1
        if depth > _MAX_DEPTH or self._count > _MAX_CONDITIONS:
            raise _invalid(path, f"At most {_MAX_CONDITIONS} conditions, {_MAX_DEPTH} levels deep.")
        if not isinstance(node, dict):
            raise _invalid(path, "Must be an object.")
        for word, joint in (("and", " AND "), ("or", " OR ")):
            if word in node:
                return self._join(node, word, joint, path, depth)
        if "not" in node:
            _only(node, {"not"}, path)
            inner = self.compile(node["not"], f"{path}.not", depth + 1)
            return Condition(f"(NOT {inner.sql})", inner.parameters)
        return _leaf(node, path)

    def _join(
        self, node: dict[str, Any], word: str, joint: str, path: str, depth: int
    ) -> Condition:
        _only(node, {word}, path)
        parts = node[word]
        if not isinstance(parts, list) or not parts:
            raise _invalid(f"{path}.{word}", "Must be a list of conditions, not empty.")
        compiled = [
            self.compile(part, f"{path}.{word}[{n}]", depth + 1) for n, part in enumerate(parts)
        ]
        parameters = tuple(value for part in compiled for value in part.parameters)
        return Condition("(" + joint.join(part.sql for part in compiled) + ")", parameters)


def _leaf(node: dict[str, Any], path: str) -> Condition:
    _only(node, {"field", "op", "value"}, path)
    field, operator = node.get("field"), node.get("op")
    if operator not in OPERATORS:
        raise _invalid(f"{path}.op", f"Unknown operator {operator!r}; use {', '.join(OPERATORS)}.")
    builder = _builder(field)
    if builder is None:
        raise _invalid(f"{path}.field", f"Unknown field {field!r}; use {', '.join(FIELDS)}.")
    try:
        condition = builder(operator, node.get("value", True))
    except ValueError as error:
        raise _invalid(f"{path}.value", str(error)) from error
    return Condition(f"COALESCE({condition.sql}, false)", condition.parameters)


def _builder(field: Any) -> Callable[[str, Any], Condition] | None:
    if not isinstance(field, str):
        return None
    if field in _TEXT:
        return lambda operator, value: _text(_TEXT[field], operator, value)
    if field in _TIME:
        return lambda operator, value: _time(_TIME[field], operator, value)
    if field in _LISTS:
        return lambda operator, value: _list(_LISTS[field], operator, value)
    kind, _, rest = field.partition(".")
    if kind == "metadata" and rest and "\x00" not in rest:
        return lambda operator, value: _metadata(rest.split("."), operator, value)
    return None


def _text(column: str, operator: str, value: Any) -> Condition:
    if operator == "exists":
        return Condition(f"(({column} <> '') = %s)", (_boolean(value),))
    if operator in {"in", "not_in"}:
        negation = "NOT " if operator == "not_in" else ""
        return Condition(
            f"({negation}{column} = ANY(%s))", ([_string(item) for item in _items(value)],)
        )
    text = _string(value)
    if operator == "contains":
        return Condition(f"({column} ILIKE %s)", (f"%{escape_like(text)}%",))
    if operator == "starts_with":
        return Condition(f"({column} ILIKE %s)", (f"{escape_like(text)}%",))
    return Condition(f"({column} {_COMPARE[operator]} %s)", (text,))


def _time(column: str, operator: str, value: Any) -> Condition:
    if operator == "exists":
        return Condition(f"(({column} IS NOT NULL) = %s)", (_boolean(value),))
    if operator in {"in", "not_in"}:
        negation = "NOT " if operator == "not_in" else ""
        return Condition(
            f"({negation}{column} = ANY(%s))", ([_moment(item) for item in _items(value)],)
        )
    if operator not in _COMPARE:
        raise ValueError(f"{operator} does not apply to a time.")
    return Condition(f"({column} {_COMPARE[operator]} %s)", (_moment(value),))


def _list(column: str, operator: str, value: Any) -> Condition:
    """A list matches when one of its entries does; `ne` and `not_in` when none does."""
    if operator == "exists":
        return Condition(f"((cardinality({column}) > 0) = %s)", (_boolean(value),))
    positive = {"ne": "eq", "not_in": "in"}.get(operator)
    inner = _text("entry", positive or operator, value)
    negation = "NOT " if positive else ""
    return Condition(
        f"({negation}EXISTS (SELECT 1 FROM unnest({column}) entry WHERE {inner.sql}))",
        inner.parameters,
    )


def _metadata(path: Sequence[str], operator: str, value: Any) -> Condition:
    """A list in the metadata matches when one of its entries does."""
    keys = list(path)
    if operator == "exists":
        return Condition("(((d.metadata #> %s) IS NOT NULL) = %s)", (keys, _boolean(value)))
    positive = {"ne": "eq", "not_in": "in"}.get(operator)
    inner = _json(positive or operator, value)
    entries = (
        "SELECT entry FROM jsonb_array_elements(CASE jsonb_typeof(d.metadata #> %s) WHEN 'array' "
        "THEN d.metadata #> %s ELSE jsonb_build_array(d.metadata #> %s) END) entry"
    )
    negation = "NOT " if positive else ""
    return Condition(
        f"({negation}EXISTS ({entries} WHERE {inner.sql}))", (keys, keys, keys, *inner.parameters)
    )


def _json(operator: str, value: Any) -> Condition:
    text = "(entry #>> '{}')"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if operator == "in":
        items = [_scalar_text(item) for item in _items(value)]
        return Condition(f"({text} = ANY(%s))", (items,))
    if is_number and operator in _COMPARE:
        # The CASE keeps the cast away from values that are no numbers.
        return Condition(
            f"(CASE WHEN jsonb_typeof(entry) = 'number' THEN {text}::numeric {_COMPARE[operator]} %s END)",
            (value,),
        )
    return _text(text, operator, _scalar_text(value))


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return _string(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("Must be a text.")  # noqa: TRY004 - caught as a fault of the input
    return value.replace("\x00", "")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("Must be true or false.")  # noqa: TRY004 - caught as a fault of the input
    return value


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("Must be a list.")  # noqa: TRY004 - caught as a fault of the input
    return value


def _moment(value: Any) -> datetime:
    text = _string(value)
    moment = parse_datetime(text if len(text) > 10 else f"{text}T00:00:00")
    if moment is None:
        raise ValueError("Must be a time such as 2026-01-31T00:00:00Z.")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def escape_like(text: str) -> str:
    """Text that LIKE takes literally."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _only(node: dict[str, Any], allowed: set[str], path: str) -> None:
    unknown = sorted(set(node) - allowed)
    if unknown:
        raise _invalid(
            path,
            f"Unknown key {', '.join(map(repr, unknown))} beside {', '.join(sorted(allowed))}.",
        )


def _invalid(path: str, message: str) -> InvalidInputError:
    return InvalidInputError(
        f"The filter is wrong at {path}: {message}", [FieldError(path, message)]
    )
