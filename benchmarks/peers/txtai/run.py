"""txtai: its hybrid index (Faiss and its own BM25) over given vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from txtai import Embeddings

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("txtai", "faiss-cpu")


class TxtaiPeer:
    """`hybrid=True` and nothing else changed; vectors come from outside, as its `transform` allows."""

    notes = "hybrid, defaults"

    def __init__(self, setup: Setup) -> None:
        del setup
        self._vectors: dict[str, Vectors] = {}

        def given(texts: list[str]) -> Vectors:  # a function: it would call a method to get one
            return np.stack([self._vectors[text] for text in texts])

        config = {"method": "external", "transform": given, "hybrid": True}
        self._embeddings: Any = Embeddings(config)

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Index texts; their vectors are handed over when it asks for them."""
        self._vectors = dict(zip(texts, vectors, strict=True))
        self._embeddings.index(zip(ids, texts, strict=True))

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """Its own mix of both scores."""
        self._vectors = {text: vector}
        return [key for key, _ in self._embeddings.search(text, limit)]

    def keyword_hits(self, text: str) -> int:
        """What its BM25 finds."""
        return len(self._embeddings.scoring.search(text, 1))


VARIANTS = {"txtai hybrid": TxtaiPeer}
