"""The contracts of model services. Values are plain; every call is synchronous."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Tokenizer(ABC):
    """Counts tokens as a model does, so that no text is cut off silently."""

    max_tokens: int  # of one text, special tokens and prefix already taken off

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""


class Embedder(Tokenizer):
    """Turns texts into unit vectors, `(n, dimensions)` float32."""

    model: str  # the name stored with every vector: another name, another space
    dimensions: int
    batch_size: int = 32

    @abstractmethod
    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found. Raises `RemoteError` when the service fails."""

    @abstractmethod
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions. Raises `RemoteError` when the service fails."""


class Reranker(ABC):
    """Reads a question and the texts found for it together, which sorts them better than vectors do."""

    model: str

    @abstractmethod
    def rerank(
        self, query: str, texts: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        """One relevance per text: higher is better, comparable within this call only.

        Texts come best first, each as it was embedded. One that is not reached before `deadline`, a
        moment of `time.perf_counter`, gets None, and so do all behind it. Raises `RemoteError` when
        the service fails.
        """
