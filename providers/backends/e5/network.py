"""The loaded model, which embedder and reranker share: one copy in memory per process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from providers.backends.e5.build import ModelCache
from providers.backends.e5.encoder import Encoder
from providers.backends.e5.tokenizer import BEGIN, CONTENT_TOKENS, END, E5Tokenizer
from providers.base import Vectors


class E5Network:
    """Tokenizer and encoder. They load at the first use, once; safe to share between threads."""

    def __init__(self, cache_root: Path, threads: int) -> None:
        self.cache = ModelCache(cache_root)
        self.tokenizer = E5Tokenizer(self.cache)
        self._threads = threads
        self._lock = threading.Lock()
        self._encoder: Encoder | None = None

    def means(self, texts: Sequence[Sequence[int]], dimensions: int) -> Vectors:
        """The mean state of each text, given as token ids; what is too long is cut."""
        means = np.empty((len(texts), dimensions), np.float32)
        for row, ids in enumerate(texts):
            means[row] = self.encoder().run(_framed(ids))
        return means

    def states(self, ids: Sequence[int]) -> Vectors:
        """The state of each token of a text `(min(len(ids), CONTENT_TOKENS), hidden)`."""
        return self.encoder().run_states(_framed(ids))[1:-1]

    def encoder(self) -> Encoder:
        """Loads it (half a second) at the first call."""
        with self._lock:
            if self._encoder is None:
                self._encoder = Encoder.load(self.cache, self._threads)
            return self._encoder


def _framed(ids: Sequence[int]) -> list[int]:
    return [BEGIN, *ids[:CONTENT_TOKENS], END]
