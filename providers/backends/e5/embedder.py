"""The embedder that needs nothing but this machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from providers.backends.e5 import MODEL
from providers.backends.e5.build import ModelCache
from providers.backends.e5.correction import LanguageCorrection
from providers.backends.e5.encoder import Encoder
from providers.backends.e5.tokenizer import (
    BEGIN,
    CONTENT_TOKENS,
    END,
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    E5Tokenizer,
)
from providers.base import Embedder, Vectors

log = logging.getLogger(__name__)


class LocalE5Embedder(Embedder):
    """multilingual-e5-small by onnxruntime on `threads` cores, out of the cache under `cache_root`.

    Loads at the first use, once, and is safe to share between threads. On x86 processors without VNNI
    the encoder has 7-bit weights (`build.cpu_variant`). A text's vector is the same whatever texts are
    embedded with it.
    """

    model = MODEL
    dimensions = 384
    max_tokens = E5Tokenizer.max_tokens

    def __init__(self, cache_root: Path, threads: int = 1) -> None:
        self._cache = ModelCache(cache_root)
        self._threads = threads
        self._tokenizer = E5Tokenizer(self._cache)
        self._correction = LanguageCorrection.load()
        self._lock = threading.Lock()
        self._encoder: Encoder | None = None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Exact. A passage of at most `max_tokens` reaches the model whole."""
        return self._tokenizer.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found. One that is too long is cut, and that is logged."""
        ids = [self._tokenizer.encode(PASSAGE_PREFIX + text) for text in texts]
        cut = sum(len(text) > CONTENT_TOKENS for text in ids)
        if cut:
            log.warning("%d of %d passages exceed %d tokens: cut", cut, len(ids), self.max_tokens)
        return self._correction.passages(self._run(ids))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions; of a very long one, its beginning counts."""
        ids = [self._tokenizer.encode(QUERY_PREFIX + text) for text in texts]
        return self._correction.queries(self._run(ids))

    def _run(self, texts: Sequence[Sequence[int]]) -> Vectors:
        means = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            means[row] = self._load().run([BEGIN, *text[:CONTENT_TOKENS], END])
        return means

    def _load(self) -> Encoder:
        with self._lock:
            if self._encoder is None:
                self._encoder = Encoder.load(self._cache, self._threads)
            return self._encoder
