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
        # A function, for it would call a bound method to get one.
        config = {
            "method": "external",
            "transform": lambda texts: self._given(texts),
            "hybrid": True,
        }
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
        return len(self._embeddings.search(text, 1, weights=(0.0, 1.0)))

    def _given(self, texts: list[str]) -> Vectors:
        return np.stack([self._vectors[text] for text in texts])


VARIANTS = {"txtai hybrid": TxtaiPeer}
