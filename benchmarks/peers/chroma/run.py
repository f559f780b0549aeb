"""Chroma, persistent and in this process. Locally it ranks by vectors alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import chromadb
from chromadb.config import Settings

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("chromadb",)


class ChromaPeer:
    """One collection with its default HNSW index, by cosine."""

    notes = "vectors only, default HNSW"

    def __init__(self, setup: Setup) -> None:
        settings = Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(setup.folder), settings=settings)

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Add in batches of the size that the client allows."""
        self._collection = self._client.create_collection(
            "passages", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        size = self._client.get_max_batch_size()
        for first in range(0, len(ids), size):
            part = slice(first, first + size)
            self._collection.add(ids=ids[part], documents=texts[part], embeddings=vectors[part])

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """The nearest, with their texts."""
        del text
        found = self._collection.query(
            query_embeddings=[vector], n_results=limit, include=["documents"]
        )
        ids: list[str] = found["ids"][0]
        return ids


VARIANTS = {"Chroma": ChromaPeer}
