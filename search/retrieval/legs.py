"""The SQL of each leg. Tenant, bases, permissions and filter hold inside every one of them.

A leg always fetches `DEPTH` candidates, whatever the caller's limit, so that fusing them gives the
same order for every limit. Ties are broken by id, so that the same data gives the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from pgvector import SparseVector

from knowledge.lexical.weights import DIMENSIONS, tsquery_literal
from search.access import AccessScope
from search.retrieval.filters import Condition, escape_like

DEPTH = 500


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate of one leg; a higher score is better."""

    chunk_id: UUID
    score: float


def lexical_leg(
    scope: AccessScope,
    condition: Condition | None,
    terms: Sequence[str],
    weights: Mapping[int, float],
) -> list[Scored]:
    """BM25: chunks that hold one of the terms, by the inner product of document and query weights."""
    if not terms or not weights:
        return []
    source, where, parameters = _searchable(scope, condition)
    sql = (
        "SELECT c.id, -(c.lexical_weights <#> %s::sparsevec) AS score "
        f"FROM {source} WHERE {where} AND c.lexemes @@ %s::tsquery "
        "ORDER BY score DESC, c.id LIMIT %s"
    )
    query = SparseVector(dict(weights), DIMENSIONS).to_text()
    return _run(sql, [query, *parameters, tsquery_literal(terms), DEPTH])


def vector_leg(
    scope: AccessScope,
    condition: Condition | None,
    base_ids: Sequence[UUID],
    vector: Sequence[float],
) -> list[Scored]:
    """Cosine similarity to every chunk of the bases that share the vector's model, exactly."""
    source, where, parameters = _searchable(scope, condition, base_ids)
    sql = (
        "SELECT c.id, 1 - (c.embedding <=> %s::halfvec) AS score "
        f"FROM {source} WHERE {where} AND c.embedding IS NOT NULL "
        "ORDER BY score DESC, c.id LIMIT %s"
    )
    return _run(sql, [str(list(vector)), *parameters, DEPTH])


def filename_leg(scope: AccessScope, condition: Condition | None, query: str) -> list[Scored]:
    """Documents whose title or file name holds the words or resembles them; the first chunk stands
    for the document."""
    source, where, parameters = _searchable(scope, condition, join_document=True)
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
    return _run(sql, [words, query, *parameters, words, query, DEPTH])


def _searchable(
    scope: AccessScope,
    condition: Condition | None,
    base_ids: Sequence[UUID] | None = None,
    *,
    join_document: bool = False,
) -> tuple[str, str, list[Any]]:
    source = "knowledge_chunk c"
    if condition is not None or join_document:
        source += " JOIN knowledge_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id"
    where = (
        "c.tenant_id = %s AND c.knowledge_base_id = ANY(%s) AND c.live AND c.enabled "
        "AND c.principals && %s::varchar[]"
    )
    ids = scope.base_ids if base_ids is None else list(base_ids)
    parameters: list[Any] = [scope.tenant_id, ids, list(scope.principals)]
    if condition is not None:
        where += f" AND {condition.sql}"
        parameters += condition.parameters
    return source, where, parameters


def _run(sql: str, parameters: Sequence[Any]) -> list[Scored]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [Scored(chunk_id, float(score)) for chunk_id, score in cursor.fetchall()]
