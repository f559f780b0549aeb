"""What needs no database: BM25 by bm25s, exact cosine by NumPy, and both by reciprocal ranks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import bm25s
import jieba
import numpy as np
import Stemmer

if TYPE_CHECKING:
    from benchmarks.peers.drive import Setup, Vectors

PACKAGES = ("bm25s", "numpy")
_K = 60  # of reciprocal rank fusion, as its paper has it
_CHINESE = {"zh"}


class WordsPeer:
    """BM25 in memory: English stems without stop words, Chinese words of jieba in search mode."""

    notes = "English stems without stop words; Chinese by jieba"

    def __init__(self, setup: Setup) -> None:
        self._chinese = setup.language in _CHINESE
        self._stemmer = Stemmer.Stemmer("english")
        if self._chinese:
            jieba.initialize()  # loading its dictionary is no part of ingestion

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Build the index."""
        del vectors
        self._ids = ids
        self._index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self._index.index(self._words(texts), show_progress=False)

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """Those that hold a word of the question."""
        del vector
        places, scores = self._index.retrieve(
            self._words([text]), k=min(limit, len(self._ids)), show_progress=False
        )
        pairs = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [self._ids[place] for place, score in pairs if score > 0]

    def keyword_hits(self, text: str) -> int:
        """The same without a vector."""
        return len(self.search(text, np.empty(0, np.float32), 1))

    def _words(self, texts: list[str]) -> list[list[str]]:
        if self._chinese:
            return [
                [word for word in jieba.cut_for_search(text.lower()) if word[0].isalnum()]
                for text in texts
            ]
        words: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return words


class CosinePeer:
    """The product of a matrix and a vector, then the best of it."""

    notes = "exact"

    def __init__(self, setup: Setup) -> None:
        del setup

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Keep the matrix."""
        del texts
        self._ids, self._matrix = ids, np.ascontiguousarray(vectors)

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """The nearest."""
        del text
        scores = self._matrix @ vector
        few = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        return [self._ids[place] for place in few[np.argsort(-scores[few], kind="stable")]]


class FusedPeer:
    """Both, by reciprocal ranks."""

    notes = f"RRF, k = {_K}"

    def __init__(self, setup: Setup) -> None:
        self._parts = (WordsPeer(setup), CosinePeer(setup))

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Both indexes."""
        for part in self._parts:
            part.ingest(ids, texts, vectors)

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """The sum of 1 / (k + rank)."""
        sums: defaultdict[str, float] = defaultdict(float)
        for part in self._parts:
            for rank, key in enumerate(part.search(text, vector, limit), 1):
                sums[key] += 1 / (_K + rank)
        return sorted(sums, key=lambda key: -sums[key])[:limit]


VARIANTS = {
    "bm25s": WordsPeer,
    "NumPy cosine": CosinePeer,
    "bm25s + NumPy cosine, RRF": FusedPeer,
}
