"""LlamaIndex with pgvector: the store's own hybrid mode, and its fusion retriever over two retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core import MockEmbedding, QueryBundle, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.vector_stores.postgres import PGVectorStore

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("llama-index-core", "llama-index-vector-stores-postgres")


class StorePeer:
    """PGVectorStore with `hybrid_search=True`, no vector index (its default), English or plain words."""

    def __init__(self, setup: Setup) -> None:
        self._config = "simple" if setup.language == "zh" else "english"
        self.notes = f"ts_rank ({self._config}, OR) and exact vectors, as the store joins them"
        self._address, self._table = setup.database_url, f"passages_{setup.number}"

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Add nodes with their embeddings."""
        self._store = PGVectorStore.from_params(
            connection_string=self._address.replace("postgresql:", "postgresql+psycopg2:"),
            async_connection_string=self._address.replace("postgresql:", "postgresql+asyncpg:"),
            table_name=self._table,
            embed_dim=vectors.shape[1],
            hybrid_search=True,
            text_search_config=self._config,
        )
        rows = zip(ids, texts, vectors.tolist(), strict=True)
        self._store.add(
            [TextNode(id_=key, text=text, embedding=vector) for key, text, vector in rows]
        )

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """One query in the hybrid mode."""
        asked = VectorStoreQuery(
            query_embedding=vector.tolist(),
            query_str=text,
            similarity_top_k=limit,
            sparse_top_k=limit,
            hybrid_top_k=limit,
            mode=VectorStoreQueryMode.HYBRID,
        )
        return list(self._store.query(asked).ids or [])[:limit]

    def keyword_hits(self, text: str) -> int:
        """What its sparse mode finds."""
        asked = VectorStoreQuery(
            query_str=text, similarity_top_k=1, sparse_top_k=1, mode=VectorStoreQueryMode.SPARSE
        )
        return len(self._store.query(asked).ids or [])


class FusionPeer(StorePeer):
    """The same store behind two retrievers, which QueryFusionRetriever joins by reciprocal ranks."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.notes = (
            f"QueryFusionRetriever (RRF) over ts_rank ({self._config}, OR) and exact vectors"
        )

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """As before, and the index that retrievers come from."""
        super().ingest(ids, texts, vectors)
        embedding = MockEmbedding(embed_dim=vectors.shape[1])  # never asked: vectors are given
        self._index = VectorStoreIndex.from_vector_store(self._store, embed_model=embedding)
        self._retrievers: dict[int, QueryFusionRetriever] = {}

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """One retrieval."""
        retriever = self._retrievers.get(limit) or self._fused(limit)
        self._retrievers[limit] = retriever
        found = retriever.retrieve(QueryBundle(query_str=text, embedding=vector.tolist()))
        return [hit.node.node_id for hit in found]

    def _fused(self, limit: int) -> QueryFusionRetriever:
        near = self._index.as_retriever(vector_store_query_mode="default", similarity_top_k=limit)
        worded = self._index.as_retriever(
            vector_store_query_mode="sparse", similarity_top_k=limit, sparse_top_k=limit
        )
        return QueryFusionRetriever(
            [near, worded],
            llm=MockLLM(),
            num_queries=1,  # no rewriting of the question
            mode="reciprocal_rerank",
            similarity_top_k=limit,
            use_async=False,
        )


VARIANTS = {
    "LlamaIndex PGVectorStore hybrid": StorePeer,
    "LlamaIndex PGVectorStore, fusion retriever": FusionPeer,
}
