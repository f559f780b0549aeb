"""The embedder that needs nothing but this machine."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from providers.backends.e5 import MODEL
from providers.backends.e5.correction import LanguageCorrection
from providers.backends.e5.network import E5Network
from providers.backends.e5.tokenizer import (
    CONTENT_TOKENS,
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
        self.network = E5Network(cache_root, threads)
        self._correction = LanguageCorrection.load()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Exact. A passage of at most `max_tokens` reaches the model whole."""
        return self.network.tokenizer.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found. One that is too long is cut, and that is logged."""
        ids = [self.network.tokenizer.encode(PASSAGE_PREFIX + text) for text in texts]
        cut = sum(len(text) > CONTENT_TOKENS for text in ids)
        if cut:
            log.warning("%d of %d passages exceed %d tokens: cut", cut, len(ids), self.max_tokens)
        return self._correction.passages(self.network.means(ids, self.dimensions))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions; of a very long one, its beginning counts."""
        ids = [self.network.tokenizer.encode(QUERY_PREFIX + text) for text in texts]
        return self._correction.queries(self.network.means(ids, self.dimensions))
