"""The filter language of the API, compiled to SQL over `c` (chunk) and `d` (document)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from config.errors import FieldError, InvalidInputError
from search.retrieval.conditions import OPERATORS, Condition, compare, escape_like
from search.retrieval.fields import FIELDS, find_field

__all__ = [
    "FIELDS",
    "OPERATORS",
    "Condition",
    "FilterPart",
    "compile_filter",
    "escape_like",
    "filter_parts",
]

_MAX_DEPTH = 10
_MAX_CONDITIONS = 100
_MAX_VALUE_CHARS = 200


@dataclass(frozen=True, slots=True)
class FilterPart:
    """One of the conditions that must all hold, in words such as `source in ["notion"]`."""

    text: str
    condition: Condition


def compile_filter(tree: Mapping[str, Any] | None) -> Condition | None:
    """The condition of a filter. Raises `InvalidInputError` naming the unknown field or operator."""
    if not tree:
        return None
    return _Compiler().compile(tree, "filter", 0)


def filter_parts(tree: Mapping[str, Any] | None) -> list[FilterPart]:
    """The conditions that the filter joins by `and`, nested ones too: a passage is excluded by those
    that it fails. Raises `InvalidInputError` as `compile_filter` does."""
    if compile_filter(tree) is None:
        return []
    return [
        FilterPart(_words(part), _Compiler().compile(part, "filter", 0)) for part in _ands(tree)
    ]


def _ands(node: Any) -> Iterator[Any]:
    if "and" not in node:
        yield node
        return
    for part in node["and"]:
        yield from _ands(part)


def _words(node: Mapping[str, Any]) -> str:
    for word in ("and", "or"):
        if word in node:
            return "(" + f" {word} ".join(_words(part) for part in node[word]) + ")"
    if "not" in node:
        return f"not {_words(node['not'])}"
    value = json.dumps(node.get("value", True), ensure_ascii=False)
    if len(value) > _MAX_VALUE_CHARS:
        value = f"{value[:_MAX_VALUE_CHARS]}…"
    return f"{node['field']} {node['op']} {value}"


class _Compiler:
    def __init__(self) -> None:
        self._count = 0

    def compile(self, node: Any, path: str, depth: int) -> Condition:
        self._count += 1
        if depth > _MAX_DEPTH or self._count > _MAX_CONDITIONS:
            raise _invalid(path, f"At most {_MAX_CONDITIONS} conditions, {_MAX_DEPTH} levels deep.")
        if not isinstance(node, dict):
            raise _invalid(path, "Must be an object.")
        for word in ("and", "or"):
            if word in node:
                return self._join(node, word, path, depth)
        if "not" in node:
            _only(node, {"not"}, path)
            inner = self.compile(node["not"], f"{path}.not", depth + 1)
            return _combined(f"(NOT {inner.sql})", [inner])
        return _leaf(node, path)

    def _join(self, node: dict[str, Any], word: str, path: str, depth: int) -> Condition:
        _only(node, {word}, path)
        parts = node[word]
        if not isinstance(parts, list) or not parts:
            raise _invalid(f"{path}.{word}", "Must be a list of conditions, not empty.")
        compiled = [
            self.compile(part, f"{path}.{word}[{n}]", depth + 1) for n, part in enumerate(parts)
        ]
        return _combined(
            "(" + f" {word.upper()} ".join(part.sql for part in compiled) + ")", compiled
        )


def _combined(sql: str, parts: Sequence[Condition]) -> Condition:
    return Condition(
        sql,
        tuple(value for part in parts for value in part.parameters),
        on_chunk=any(part.on_chunk for part in parts),
        on_document=any(part.on_document for part in parts),
    )


def _leaf(node: dict[str, Any], path: str) -> Condition:
    _only(node, {"field", "op", "value"}, path)
    name, operator = node.get("field"), node.get("op")
    if operator not in OPERATORS:
        raise _invalid(f"{path}.op", f"Unknown operator {operator!r}; use {', '.join(OPERATORS)}.")
    field = find_field(name)
    if field is None:
        raise _invalid(f"{path}.field", f"Unknown field {name!r}; use {', '.join(FIELDS)}.")
    if "value" not in node and operator != "exists":
        raise _invalid(f"{path}.value", f"{operator} needs a value.")
    try:
        return compare(field, operator, node.get("value", True))
    except ValueError as error:
        raise _invalid(f"{path}.value", str(error)) from error


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
