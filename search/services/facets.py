"""Facets: which values the fields of the filter language have, and how many documents hold each.

They are counted over everything that the caller may see and the filter admits, whatever the query
of a search ranks; only `read_facets` takes a query into account, and only when it is given one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accounts.access import Actor
from config.errors import FieldError, InvalidInputError
from knowledge.lexical.weights import tsquery_literal
from search.access import AccessScope, build_scope
from search.retrieval.counts import Window, count_values
from search.retrieval.fields import FIELDS, Field, Kind, find_field
from search.retrieval.filters import Condition
from search.retrieval.query import read_words
from search.retrieval.searchable import Searchable, narrowed

MAX_FACETS = 10
MAX_VALUES = 200
MAX_OFFSET = 10_000
DEFAULT_FACETS = ("source", "content_type", "language", "author", "created_at", "updated_at")
DEFAULT_VALUES = 20


@dataclass(frozen=True, slots=True)
class FacetRequest:
    """What is to be counted. `limit` and `offset` choose the values of each field."""

    fields: Sequence[str] = DEFAULT_FACETS
    knowledge_bases: Sequence[str] | None = None
    condition: Condition | None = None
    query: str = ""  # counts only passages that hold one of its words
    as_principals: Sequence[str] | None = None
    limit: int = DEFAULT_VALUES
    offset: int = 0


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """Documents and chunks in all, and the facets by field; `warning` says what was left aside."""

    documents: int
    chunks: int
    facets: dict[str, object]
    warning: str | None = None


def read_facets(actor: Actor, request: FacetRequest) -> FacetCounts:
    """Count, in the tenant's scope. Raises `InvalidInputError` naming an unknown base or field."""
    fields = facet_fields(request.fields, "fields")
    scope, warning = build_scope(actor, request.knowledge_bases, request.as_principals)
    condition = request.condition
    if request.query.strip():
        condition = _both(condition, _holds_a_word(request.query, scope))
    window = Window(request.limit, request.offset)
    return replace(_count(scope, condition, fields, window), warning=warning)


def count_facets(
    scope: AccessScope, condition: Condition | None, fields: Sequence[str], limit: int
) -> dict[str, object]:
    """The facets by field over all that the scope may see and the condition admits."""
    return _count(scope, condition, facet_fields(fields), Window(limit)).facets


def facet_fields(names: Sequence[str], parameter: str = "facets") -> list[Field]:
    """The fields of these names, each once. Raises `InvalidInputError` naming an unknown one."""
    unique = list(dict.fromkeys(names))
    if len(unique) > MAX_FACETS:
        raise InvalidInputError(
            "Too many facets.", [FieldError(parameter, f"At most {MAX_FACETS} fields.")]
        )
    found = {name: find_field(name) for name in unique}
    unknown = [repr(name) for name, field in found.items() if field is None]
    if unknown:
        raise InvalidInputError(
            "The facets cannot be counted.",
            [
                FieldError(
                    parameter, f"Unknown field {', '.join(unknown)}; use {', '.join(FIELDS)}."
                )
            ],
        )
    return [field for field in found.values() if field is not None]


def _count(
    scope: AccessScope, condition: Condition | None, fields: Sequence[Field], window: Window
) -> FacetCounts:
    searchable = narrowed(Searchable(scope, tuple(scope.base_ids), condition))
    whole, counted = count_values(searchable, fields, window)
    facets: dict[str, object] = {
        field.name: _facet(field, answer, whole["documents"], window)
        for field, answer in zip(fields, counted, strict=True)
    }
    return FacetCounts(whole["documents"], whole["chunks"], facets)


def _facet(
    field: Field, counted: Mapping[str, Any], documents: int, window: Window
) -> dict[str, Any]:
    if field.kind is Kind.TIME:
        return {
            "type": "time",
            "min": counted["min"],
            "max": counted["max"],
            "years": _years(counted["months"]),
            "months": counted["months"],
        }
    facet = {
        "type": "metadata" if field.kind is Kind.METADATA else "text",
        "values": counted["values"],
        "further_values": max(0, counted["distinct"] - window.offset - len(counted["values"])),
        "documents_without": documents - counted["documents"],
    }
    if counted.get("min") is not None:
        facet |= {"min": counted["min"], "max": counted["max"]}
    return facet


def _years(months: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    years: dict[str, dict[str, Any]] = {}
    for month in months:
        name = month["value"][:-3]
        year = years.setdefault(name, {"value": name, "documents": 0, "chunks": 0})
        year["documents"] += month["documents"]
        year["chunks"] += month["chunks"]
    return list(years.values())


def _holds_a_word(query: str, scope: AccessScope) -> Condition:
    """As the lexical leg matches."""
    words = read_words(query, scope.base_ids)
    holds, parameters = "c.lexemes @@ %s::tsquery", [tsquery_literal(words.frequencies)]
    for base_id, own in words.own.items():
        holds += " OR (c.knowledge_base_id = %s AND c.lexemes @@ %s::tsquery)"
        parameters += [str(base_id), tsquery_literal(own.frequencies)]
    return Condition(f"({holds})", tuple(parameters), on_chunk=True)


def _both(one: Condition | None, other: Condition) -> Condition:
    if one is None:
        return other
    return Condition(
        f"({one.sql} AND {other.sql})",
        (*one.parameters, *other.parameters),
        on_chunk=one.on_chunk or other.on_chunk,
        on_document=one.on_document or other.on_document,
    )
