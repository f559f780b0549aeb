"""Where one passage stands in each leg, counted exactly, however far down that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from knowledge.lexical.weights import sparsevec_literal
from search.retrieval.conditions import Condition
from search.retrieval.legs import Scored, Vector, merged, read_through
from search.retrieval.searchable import Searchable

_ONE = (
    "FROM knowledge_chunk c JOIN knowledge_document d ON d.tenant_id = c.tenant_id "
    "AND d.id = c.document_id WHERE c.tenant_id = %s AND c.id = %s"
)


@dataclass(frozen=True, slots=True)
class Score:
    """A score of chunks as an SQL expression over `c` with its parameters."""

    sql: str
    parameters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Rank and score of a passage in a leg, and the least score among the candidates it took; None
    where the leg took every passage that matches."""

    rank: int
    score: float
    needed: float | None


def by_words(weights: Mapping[int, float]) -> Score:
    """The BM25 score for a query's weights."""
    return Score("-(c.lexical_weights <#> %s::sparsevec)", (sparsevec_literal(weights),))


def by_meaning(vector: Vector) -> Score:
    """The similarity to a query's vector."""
    return Score(f"1 - (c.{vector.field} <=> %s::halfvec)", (vector.literal,))


def score_of(searchable: Searchable, chunk_id: UUID, score: Score) -> float | None:
    """A passage's score; None when it has none, as without a vector."""
    sql = f"SELECT {score.sql} {_ONE}"
    with connection.cursor() as cursor:
        cursor.execute(sql, [*score.parameters, searchable.scope.tenant_id, chunk_id])
        row = cursor.fetchone()
    return None if row is None or row[0] is None else float(row[0])


def best_of(searchable: Searchable, document_id: UUID, score: Score) -> UUID | None:
    """The passage of a document that scores best, whether it may be found or not."""
    sql = (
        "SELECT c.id FROM knowledge_chunk c WHERE c.tenant_id = %s AND c.document_id = %s AND c.live "
        f"ORDER BY c.enabled DESC, {score.sql} DESC NULLS LAST, c.ordinal LIMIT 1"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [searchable.scope.tenant_id, document_id, *score.parameters])
        row = cursor.fetchone()
    return row[0] if row else None


def standing(
    parts: Sequence[tuple[Searchable, Score]], chunk_id: UUID, value: float, needed: float | None
) -> Standing:
    """The rank of a passage that scores `value` among all that the parts admit."""
    return Standing(
        1 + sum(_count_better(part, score, chunk_id, value) for part, score in parts), value, needed
    )


def least_taken(
    parts: Sequence[tuple[Searchable, Mapping[int, float], Vector | None]], depth: int
) -> float | None:
    """The score of the last of the `depth` best; None when there are fewer."""
    found: list[list[Scored]] = []
    for part, weights, vector in parts:
        read = read_through(part, weights, vector, depth)
        found.append(read.vector if vector else read.lexical)
    best = merged(found, depth) if found else []
    return best[-1].score if len(best) == depth else None


def holds(searchable: Searchable, chunk_id: UUID, condition: Condition) -> bool:
    """Whether a condition of a filter is true of a passage."""
    sql = f"SELECT {condition.sql} {_ONE}"
    with connection.cursor() as cursor:
        cursor.execute(sql, [*condition.parameters, searchable.scope.tenant_id, chunk_id])
        row = cursor.fetchone()
    return bool(row and row[0])


def _count_better(searchable: Searchable, score: Score, chunk_id: UUID, value: float) -> int:
    source, where, parameters = searchable.sql()
    sql = (
        f"SELECT count(*) FROM {source} WHERE {where} "
        f"AND ({score.sql} > %s OR ({score.sql} = %s AND c.id < %s))"
    )
    known = [*score.parameters, value, *score.parameters, value, chunk_id]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*parameters, *known])
        better: int = cursor.fetchone()[0]
    return better
