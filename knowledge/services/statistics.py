"""Keeping and reading the BM25 statistics of bases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.tenancy import current_tenant_id

_FOLD_LOCK = 7_205_001  # names our advisory lock beside a base's id


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Of the searched bases together: searchable chunks, their summed length in terms, languages."""

    chunks: int
    length: int
    languages: tuple[str, ...]

    @property
    def average_length(self) -> float:
        """Terms in an average chunk."""
        return self.length / self.chunks if self.chunks else 0.0


def count_chunks(chunk_ids: Collection[UUID], *, sign: int) -> None:
    """Add (`sign` 1) or take away (-1) searchable chunks, inside the transaction that changes them."""
    condition = "c.tenant_id = %s AND c.id = ANY(%s) AND c.live AND c.enabled"
    parameters = [sign, current_tenant_id(), list(chunk_ids)]
    _append(condition, parameters)


def count_document(document_id: UUID, *, sign: int) -> None:
    """The same for every searchable chunk of a document."""
    condition = "c.tenant_id = %s AND c.document_id = %s AND c.live AND c.enabled"
    _append(condition, [sign, current_tenant_id(), document_id])


def corpus_statistics(knowledge_base_ids: Collection[UUID]) -> CorpusStatistics:
    """Size and languages of some bases."""
    return statistics_of(_totals(LENGTH_TOTALS, knowledge_base_ids))


def statistics_of(rows: Iterable[tuple[str, int, int]]) -> CorpusStatistics:
    """The same from the rows of `LENGTH_TOTALS`, for who reads them together with other things."""
    kept = [(language, int(chunks), int(length)) for language, chunks, length in rows if chunks > 0]
    return CorpusStatistics(
        chunks=sum(chunks for _, chunks, _ in kept),
        length=sum(length for _, _, length in kept),
        languages=tuple(sorted(language for language, _, _ in kept)),
    )


def document_frequencies(
    knowledge_base_ids: Collection[UUID], terms: Collection[str]
) -> Mapping[str, int]:
    """In how many searchable chunks each term occurs; terms that occur in none are left out."""
    if not terms:
        return {}
    rows = _totals(_TERM_TOTALS, knowledge_base_ids, list(terms))
    return {term: int(chunks) for term, chunks in rows if chunks > 0}


def _totals(sql: str, knowledge_base_ids: Collection[UUID], *more: list[str]) -> list[Any]:
    # By hand, as every search runs both: the ORM takes longer to write them than the database to answer.
    with connection.cursor() as cursor:
        cursor.execute(sql, [current_tenant_id(), list(knowledge_base_ids), *more])
        rows: list[Any] = cursor.fetchall()
    return rows


def fold_statistics(knowledge_base_id: UUID) -> int:
    """Replace the ledger of a base by its sums; returns how many rows that saved. Runs in a tenant's
    scope. Two runs for one base take turns; indexing goes on meanwhile."""
    tenant_id = current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_FOLD_LOCK, str(knowledge_base_id)]
        )
        cursor.execute(_FOLD_TERMS, [tenant_id, knowledge_base_id, tenant_id, knowledge_base_id])
        saved: int = cursor.fetchone()[0]
        cursor.execute(_FOLD_LENGTHS, [tenant_id, knowledge_base_id, tenant_id, knowledge_base_id])
    return saved


def _append(condition: str, parameters: list[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_TERMS.format(condition=condition), parameters)
        cursor.execute(_LENGTHS.format(condition=condition), [parameters[0], *parameters])


# Takes a tenant and its bases.
LENGTH_TOTALS = """
SELECT language, sum(chunks), sum(length) FROM knowledge_lengthstatistic
WHERE tenant_id = %s AND knowledge_base_id = ANY(%s) GROUP BY language
"""
_TERM_TOTALS = """
SELECT term, sum(chunks) FROM knowledge_termstatistic
WHERE tenant_id = %s AND knowledge_base_id = ANY(%s) AND term = ANY(%s) GROUP BY term
"""
# The condition is one of the two literals above.
_TERMS = """
INSERT INTO knowledge_termstatistic (id, tenant_id, knowledge_base_id, term, chunks)
SELECT gen_random_uuid(), tenant_id, knowledge_base_id, term, count * %s FROM (
  SELECT c.tenant_id, c.knowledge_base_id, term, count(*)
  FROM knowledge_chunk c, unnest(tsvector_to_array(c.lexemes)) term
  WHERE {condition} GROUP BY 1, 2, 3) counted
"""
_LENGTHS = """
INSERT INTO knowledge_lengthstatistic (id, tenant_id, knowledge_base_id, language, chunks, length)
SELECT gen_random_uuid(), c.tenant_id, c.knowledge_base_id, c.language,
       count(*) * %s, sum(c.lexical_length) * %s
FROM knowledge_chunk c WHERE {condition} GROUP BY 2, 3, 4
"""
_FOLD_TERMS = """
WITH taken AS (
  DELETE FROM knowledge_termstatistic WHERE tenant_id = %s AND knowledge_base_id = %s
  RETURNING term, chunks),
kept AS (
  INSERT INTO knowledge_termstatistic (id, tenant_id, knowledge_base_id, term, chunks)
  SELECT gen_random_uuid(), %s, %s, term, sum(chunks) FROM taken GROUP BY term HAVING sum(chunks) <> 0
  RETURNING 1)
SELECT (SELECT count(*) FROM taken) - (SELECT count(*) FROM kept)
"""
_FOLD_LENGTHS = """
WITH taken AS (
  DELETE FROM knowledge_lengthstatistic WHERE tenant_id = %s AND knowledge_base_id = %s
  RETURNING language, chunks, length)
INSERT INTO knowledge_lengthstatistic (id, tenant_id, knowledge_base_id, language, chunks, length)
SELECT gen_random_uuid(), %s, %s, language, sum(chunks), sum(length) FROM taken
GROUP BY language HAVING sum(chunks) <> 0
"""
