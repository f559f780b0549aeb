"""LanceDB: hybrid search over one table, full text and vectors, with its default reranker (RRF)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import lancedb
import pyarrow as pa

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("lancedb",)


class LancePeer:
    """One table without a vector index (exact) and with a full-text index."""

    def __init__(self, setup: Setup, *, tokenizer: str) -> None:
        self.notes = f"RRF of exact vectors and full text, tokenizer {tokenizer}, English stems"
        self._database = lancedb.connect(setup.folder)
        self._tokenizer = tokenizer

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Write the rows, then the full-text index."""
        flat = pa.array(vectors.reshape(-1))
        columns = {
            "id": pa.array(ids),
            "text": pa.array(texts),
            "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        }
        self._table = self._database.create_table("passages", pa.table(columns))
        self._table.create_fts_index("text", base_tokenizer=self._tokenizer)

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """Its hybrid query."""
        query = self._table.search(query_type="hybrid").vector(vector).text(text)
        rows = query.distance_type("cosine").select(["id", "text"]).limit(limit).to_list()
        return [row["id"] for row in rows]

    def keyword_hits(self, text: str) -> int:
        """What the full-text index alone finds."""
        return len(self._table.search(text, query_type="fts").limit(1).to_list())


VARIANTS = {
    "LanceDB hybrid": partial(LancePeer, tokenizer="simple"),
    "LanceDB hybrid, icu tokenizer": partial(LancePeer, tokenizer="icu"),
}
