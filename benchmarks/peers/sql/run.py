"""PostgreSQL by hand, as tutorials have it: `ts_rank_cd` and pgvector, joined by reciprocal ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
from pgvector.psycopg import register_vector

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("psycopg", "pgvector")
_TABLE = """
CREATE TABLE passages (
    id text PRIMARY KEY, content text NOT NULL, embedding vector({dimensions}) NOT NULL,
    words tsvector GENERATED ALWAYS AS (to_tsvector('{language}', content)) STORED
)
"""
_WORD_INDEX = "CREATE INDEX ON passages USING gin (words)"
_VECTOR_INDEX = "CREATE INDEX ON passages USING hnsw (embedding vector_cosine_ops)"
_SEARCH = """
WITH lexical AS (
    SELECT id, row_number() OVER (ORDER BY ts_rank_cd(words, query) DESC) AS place
    FROM passages, to_tsquery('{language}', %(words)s) AS query
    WHERE words @@ query ORDER BY place LIMIT %(limit)s
), semantic AS (
    SELECT id, row_number() OVER (ORDER BY embedding <=> %(vector)s) AS place
    FROM passages ORDER BY embedding <=> %(vector)s LIMIT %(limit)s
)
SELECT id, content FROM passages JOIN (
    SELECT id, coalesce(1.0 / (60 + l.place), 0) + coalesce(1.0 / (60 + s.place), 0) AS score
    FROM lexical l FULL JOIN semantic s USING (id)
) AS fused USING (id) ORDER BY score DESC LIMIT %(limit)s
"""


class SqlPeer:
    """One table with a GIN and an HNSW index; a question's words are joined by OR."""

    notes = "ts_rank_cd (OR) and HNSW (ef_search 100), RRF k = 60"

    def __init__(self, setup: Setup) -> None:
        self._language = "simple" if setup.language == "zh" else "english"
        self._connection = psycopg.connect(setup.database_url, autocommit=True)
        register_vector(self._connection)
        self._connection.execute("SET hnsw.ef_search = 100")

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Copy the rows, then build the indexes."""
        table = _TABLE.format(dimensions=vectors.shape[1], language=self._language)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(table)
            with cursor.copy("COPY passages (id, content, embedding) FROM STDIN") as copy:
                for row in zip(ids, texts, vectors, strict=True):
                    copy.write_row(row)
            cursor.execute(_WORD_INDEX)
            cursor.execute(_VECTOR_INDEX)
        self._connection.execute("VACUUM ANALYZE passages")

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """One statement."""
        values = {"words": _any_word(text), "vector": vector, "limit": limit}
        search = _SEARCH.format(language=self._language)
        return [row[0] for row in self._connection.execute(search, values)]

    def keyword_hits(self, text: str) -> int:
        """What the words find."""
        query = f"SELECT 1 FROM passages WHERE words @@ to_tsquery('{self._language}', %s) LIMIT 1"  # noqa: S608
        return len(self._connection.execute(query, [_any_word(text)]).fetchall())


def _any_word(text: str) -> str:
    return " | ".join(re.findall(r"\w+", text))


VARIANTS = {"SQL by hand: ts_rank_cd + pgvector, RRF": SqlPeer}
