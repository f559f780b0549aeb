"""What an engineer would write by hand for one base: psycopg, prepared statements, one connection.

The same BM25 vectors, embeddings and indexes as the product has, the same embedder in the same process;
no Django, no history, no rendering. Both legs give their best hundred, mixed by min-max in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from pgvector import HalfVector, SparseVector
from pgvector.psycopg import register_vector

from benchmarks.speed.filling import Filled
from benchmarks.speed.material import Question
from knowledge.lexical.analyzer import query_words
from knowledge.lexical.weights import DIMENSIONS, tsquery_literal, word_weights
from providers.base import Embedder, Vectors
from search.retrieval.candidates import BUDGET, choose_candidates

PLAIN_BELOW = 20_000  # chunks; smaller bases are scanned
EF_SEARCH = 200
_DEPTH = 100
_JOIN = "JOIN knowledge_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id"
_FREQUENCIES = (
    "SELECT term, sum(chunks)::int FROM knowledge_termstatistic "
    "WHERE tenant_id = %s AND knowledge_base_id = %s AND term = ANY(%s) GROUP BY term"
)
# Every piece of SQL below is a literal of these modules; values are parameters.
_CONTENTS = (
    "SELECT c.id, c.content, c.heading_path, c.page, d.id, d.title, d.source, d.source_uri, d.metadata "  # noqa: S608
    f"FROM knowledge_chunk c {_JOIN} WHERE c.tenant_id = %s AND c.id = ANY(%s)"
)

Ranking = list[tuple[UUID, float]]


@contextmanager
def connected() -> Iterator[psycopg.Connection[Any]]:
    """A connection that knows the vector types and looks as far into a vector index as the product."""
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as link:
        register_vector(link)
        link.execute(f"SET hnsw.ef_search = {EF_SEARCH}")
        link.execute("SET hnsw.iterative_scan = 'relaxed_order'")
        yield link


def mix(words: Ranking, nearest: Ranking) -> Ranking:
    """Each leg's scores from 0 to 1, then their mean; what a leg lacks counts 0 there."""
    mixed: dict[UUID, float] = {}
    for leg in (words, nearest):
        lowest = min((score for _, score in leg), default=0.0)
        span = max((score for _, score in leg), default=0.0) - lowest
        for chunk_id, score in leg:
            share = (score - lowest) / span if span else 1.0
            mixed[chunk_id] = mixed.get(chunk_id, 0.0) + share / 2
    return sorted(mixed.items(), key=lambda one: (-one[1], one[0]))


@dataclass(frozen=True, slots=True)
class ByHand:
    """Hybrid search in one base. With `budgeted` words give the product's candidates instead of every
    passage with any of them. `plain` scans; otherwise the base's own indexes are there to be used."""

    link: psycopg.Connection[Any]
    filled: Filled
    embedder: Embedder
    language: str
    budgeted: bool = False
    plain: bool = False

    @classmethod
    def as_usual(
        cls, link: psycopg.Connection[Any], filled: Filled, embedder: Embedder, language: str
    ) -> ByHand:
        """Plain scans where the base is small, indexes where it is large."""
        return cls(link, filled, embedder, language, plain=filled.chunks < PLAIN_BELOW)

    def search(self, question: Question) -> list[tuple[Any, ...]]:
        """The best ten with content and source, best first."""
        vector = self.embedder.embed_queries([question.text])[0]
        ranked = mix(self.words(question), self.nearest(question, vector))[:10]
        ids = [chunk_id for chunk_id, _ in ranked]
        found = self._rows(_CONTENTS, [self.filled.base.tenant_id, ids])
        by_id = {row[0]: row for row in found}
        return [by_id[chunk_id] for chunk_id in ids]

    def words(self, question: Question, depth: int = _DEPTH) -> Ranking:
        """BM25."""
        words = query_words(question.text, [self.language])
        base, terms = self.filled.base, list({term for word in words for term in word.variants})
        frequencies = dict(self._rows(_FREQUENCIES, [base.tenant_id, base.id, terms]))
        if not frequencies:
            return []
        weights = word_weights(words, frequencies, self.filled.chunks)
        where, parameters = self._where(question)
        if not self.plain:
            where += " AND c.lexemes @@ %s::tsquery"
            parameters.append(self._candidates(frequencies))
        sql = (
            f"SELECT c.id, -(c.lexical_weights <#> %s) AS score FROM {self._source(question)} "  # noqa: S608
            f"WHERE {where} ORDER BY score DESC LIMIT {depth}"
        )
        rows = self._rows(sql, [SparseVector(weights, DIMENSIONS), *parameters])
        return [(chunk_id, score) for chunk_id, score in rows if score > 0]

    def nearest(self, question: Question, vector: Vectors, depth: int = _DEPTH) -> Ranking:
        """Cosine similarity."""
        where, parameters = self._where(question)
        size = "" if self.plain else f"::halfvec({len(vector)})"
        distance = f"c.embedding{size} <=> %s{size}"
        sql = (
            f"SELECT c.id, {distance} AS distance FROM {self._source(question)} "  # noqa: S608
            f"WHERE {where} ORDER BY {distance} LIMIT {depth}"
        )
        literal = HalfVector(vector)
        rows = self._rows(sql, [literal, *parameters, literal])
        return sorted(((key, 1 - far) for key, far in rows), key=lambda one: (-one[1], one[0]))

    def exactly_nearest(self, question: Question, vector: Vectors, limit: int) -> list[UUID]:  # fmt: skip
        """The nearest by comparing every passage; more than `limit` where the last ones tie."""
        where, parameters = self._where(question)
        sql = (
            f"SELECT c.id FROM {self._source(question)} WHERE {where} AND c.embedding IS NOT NULL "  # noqa: S608
            f"ORDER BY c.embedding <=> %s FETCH FIRST {limit} ROWS WITH TIES"
        )
        return [row[0] for row in self._rows(sql, [*parameters, HalfVector(vector)])]

    def _candidates(self, frequencies: dict[str, int]) -> str:
        if not self.budgeted:
            return tsquery_literal(frequencies)
        return choose_candidates(tuple(frequencies), frequencies, self.filled.chunks, BUDGET).query

    def _source(self, question: Question) -> str:
        return f"knowledge_chunk c {_JOIN}" if "d." in question.sql else "knowledge_chunk c"

    def _where(self, question: Question) -> tuple[str, list[Any]]:
        base = self.filled.base
        ids: list[Any] = [base.tenant_id, base.id]
        where = "c.tenant_id = %s AND c.knowledge_base_id = %s"
        if not self.plain:  # as parameters they would hide the base's indexes from a prepared plan
            where, ids = f"c.tenant_id = '{ids[0]}' AND c.knowledge_base_id = '{ids[1]}'", []
        where += " AND c.live AND c.enabled AND c.principals && %s::varchar[]"
        if question.sql:
            where += f" AND {question.sql}"
        return where, [*ids, list(question.principals), *question.parameters]

    def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        return self.link.execute(sql.encode(), parameters, prepare=True).fetchall()
