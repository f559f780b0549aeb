"""Haystack with pgvector: keyword and embedding retrievers, joined by reciprocal rank fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haystack import Document
from haystack.components.joiners import DocumentJoiner
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.pgvector import (
    PgvectorEmbeddingRetriever,
    PgvectorKeywordRetriever,
)
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("haystack-ai", "pgvector-haystack")


class HaystackPeer:
    """Its document store with the defaults (exact neighbours), English or plain words."""

    def __init__(self, setup: Setup) -> None:
        language = "simple" if setup.language == "zh" else "english"
        self.notes = (
            f"PgvectorKeywordRetriever ({language}), PgvectorEmbeddingRetriever (exact), RRF"
        )
        self._address, self._language = setup.database_url, language
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion")

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Write the documents with their embeddings."""
        store = PgvectorDocumentStore(
            connection_string=Secret.from_token(self._address),
            embedding_dimension=vectors.shape[1],
            language=self._language,
        )
        rows = zip(ids, texts, vectors.tolist(), strict=True)
        documents = [Document(id=key, content=text, embedding=vector) for key, text, vector in rows]
        store.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
        self._by_vector = PgvectorEmbeddingRetriever(document_store=store)
        self._by_words = PgvectorKeywordRetriever(document_store=store)

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """Both retrievers, then the joiner."""
        near = self._by_vector.run(query_embedding=vector.tolist(), top_k=limit)["documents"]
        worded = self._by_words.run(query=text, top_k=limit)["documents"]
        joined = self._joiner.run(documents=[near, worded], top_k=limit)["documents"]
        return [document.id for document in joined]

    def keyword_hits(self, text: str) -> int:
        """What the keyword retriever finds."""
        return len(self._by_words.run(query=text, top_k=1)["documents"])


VARIANTS = {"Haystack + pgvector, RRF joiner": HaystackPeer}
