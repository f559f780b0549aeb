"""The SQL of each leg. Tenant, bases, permissions and filter hold inside every one of them.

A base is searched in one of two ways. A small one is read through: one pass gives each passage its BM25
score and its similarity, exactly. A large one has indexes of its own (`knowledge.services.base_indexes`):
there the rarest words of the query name the candidates that are scored, and the vector index gives
the nearest passages. Ties are broken by id, so that the same data gives the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from knowledge.lexical.weights import sparsevec_literal, tsquery_literal
from search.retrieval.candidates import MOST, Candidates
from search.retrieval.filters import escape_like
from search.retrieval.searchable import Searchable

# The vector index looks at this many passages for 100 results: recall@10 of 0.98 and above by
# `make bench`. Under filters it goes on until there are enough, at most to the second number.
_EF_SEARCH = 300
_MAX_SCAN_TUPLES = 20_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate of one leg; a higher score is better."""

    chunk_id: UUID
    score: float


@dataclass(frozen=True, slots=True)
class Vector:
    """A query's vector and the field of the chunks that it compares with."""

    values: Sequence[float]
    field: str

    @property
    def literal(self) -> str:
        """As pgvector reads it."""
        return "[" + ",".join(f"{value:.7g}" for value in self.values) + "]"


@dataclass(frozen=True, slots=True)
class Found:
    """What a way of searching found by words and by meaning, best first, each up to the depth."""

    lexical: list[Scored]
    vector: list[Scored]


def read_through(
    searchable: Searchable, weights: Mapping[int, float], vector: Vector | None, depth: int
) -> Found:
    """Score every passage. Without weights or without a vector that side stays empty."""
    if not weights and vector is None:
        return Found([], [])
    source, where, parameters = searchable.sql()
    lexical, lexical_parameters = _lexical_score(weights)
    similarity, vector_parameters = _similarity(vector)
    sql = (
        f"WITH scored AS MATERIALIZED (SELECT c.id, {lexical} AS lexical, {similarity} AS similarity "
        f"FROM {source} WHERE {where}) "
        "(SELECT true, id, lexical FROM scored WHERE lexical > 0 ORDER BY lexical DESC, id LIMIT %s) "
        "UNION ALL (SELECT false, id, similarity FROM scored WHERE similarity IS NOT NULL "
        "ORDER BY similarity DESC, id LIMIT %s)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*lexical_parameters, *vector_parameters, *parameters, depth, depth])
        rows = cursor.fetchall()
    return Found(
        [Scored(chunk_id, score) for is_lexical, chunk_id, score in rows if is_lexical],
        [Scored(chunk_id, score) for is_lexical, chunk_id, score in rows if not is_lexical],
    )


def lexical_leg(
    searchable: Searchable, candidates: Candidates, weights: Mapping[int, float], depth: int
) -> list[Scored]:
    """BM25 by the word index: the candidates with the rarest words are scored by all words. Should
    they be fewer than `depth`, all passages with any of the words are."""
    if not weights:
        return []
    found = _lexical(searchable, candidates.query, weights, depth)
    if len(found) < depth and not candidates.complete:
        # Bounded, it may miss some of what the rarest words have found.
        more = _lexical(searchable, tsquery_literal(candidates.terms), weights, depth)
        found = merged([found, [scored for scored in more if scored not in found]], depth)
    return found


def _lexical(
    searchable: Searchable, query: str, weights: Mapping[int, float], depth: int
) -> list[Scored]:
    source, where, parameters = searchable.sql_in_order()
    score, score_parameters = _lexical_score(weights)
    sql = (
        f"SELECT id, score FROM (SELECT c.id, {score} AS score FROM {source} WHERE {where} "
        "AND c.lexemes @@ %s::tsquery LIMIT %s) candidate ORDER BY score DESC, id LIMIT %s"
    )
    return _run(sql, [*score_parameters, *parameters, query, MOST, depth])


def vector_leg(searchable: Searchable, vector: Vector, depth: int) -> list[Scored]:
    """Cosine similarity by the vector index. Should filter or permissions leave too few of what it
    finds, every passage is compared."""
    prepare_vector_index(depth)
    source, where, parameters = searchable.sql_in_order()
    size = len(vector.values)
    distance = f"c.{vector.field}::halfvec({size}) <=> %s::halfvec({size})"
    sql = (
        f"SELECT id, 1 - distance AS score FROM (SELECT c.id, {distance} AS distance FROM {source} "
        f"WHERE {where} AND c.{vector.field} IS NOT NULL ORDER BY {distance} LIMIT %s) nearest "
        "ORDER BY distance, id"
    )
    found = _run(sql, [vector.literal, *parameters, vector.literal, depth])
    return found if len(found) >= depth else read_through(searchable, {}, vector, depth).vector


def prepare_vector_index(depth: int) -> None:
    """Set how far the present transaction's scans of a vector index go."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), "
            "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            "set_config('hnsw.max_scan_tuples', %s, true)",
            [str(max(_EF_SEARCH, min(2 * depth, 1000))), str(_MAX_SCAN_TUPLES)],
        )


def filename_leg(searchable: Searchable, query: str, depth: int) -> list[Scored]:
    """Documents whose title or file name holds the words or resembles them; the first chunk stands
    for the document."""
    source, where, parameters = searchable.sql(join_document=True)
    words = [f"%{escape_like(word)}%" for word in query.split()[:16]]
    if not words:
        return []
    name = "(d.title || ' ' || d.filename || ' ' || d.source_uri)"
    every = f"{name} ILIKE ALL(%s)"
    sql = (
        f"SELECT c.id, (CASE WHEN {every} THEN 1 ELSE 0 END) + word_similarity(%s, {name}) AS score "
        f"FROM {source} WHERE {where} AND c.ordinal = 0 "
        f"AND ({every} OR word_similarity(%s, {name}) > 0.4) ORDER BY score DESC, c.id LIMIT %s"
    )
    return _run(sql, [words, query, *parameters, words, query, depth])


def _lexical_score(weights: Mapping[int, float]) -> tuple[str, list[Any]]:
    if not weights:
        return "NULL::float8", []
    return "-(c.lexical_weights <#> %s::sparsevec)", [sparsevec_literal(weights)]


def _similarity(vector: Vector | None) -> tuple[str, list[Any]]:
    if vector is None:
        return "NULL::float8", []
    return f"1 - (c.{vector.field} <=> %s::halfvec)", [vector.literal]


def _run(sql: str, parameters: Sequence[Any]) -> list[Scored]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [Scored(chunk_id, float(score)) for chunk_id, score in cursor.fetchall()]


def merged(parts: Sequence[Sequence[Scored]], depth: int) -> list[Scored]:
    """The best of several lists whose scores compare."""
    if len(parts) == 1:
        return list(parts[0])
    every = [scored for part in parts for scored in part]
    return sorted(every, key=lambda scored: (-scored.score, scored.chunk_id))[:depth]
