"""Keeps the vectors of the local embedder between runs, so that measuring again takes minutes.

A text's vector depends on nothing but the text and the model, so a kept one is the very one that
the product would compute; times of embedding are never taken from runs that use this.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from providers.base import Embedder, Vectors


class CachedEmbedder(Embedder):
    """The same model over a file of vectors by the digest of their texts."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.max_tokens = embedder.max_tokens
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")

    def __getattr__(self, name: str) -> Any:
        """What else the model can do, it does itself."""
        return getattr(self._embedder, name)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the model counts."""
        return self._embedder.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Kept or computed vectors of texts to be found."""
        return self._vectors("passage", texts, self._embedder.embed_passages)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Kept or computed vectors of questions."""
        return self._vectors("query", texts, self._embedder.embed_queries)

    def _vectors(
        self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]
    ) -> Vectors:
        keys = [hashlib.sha256(f"{self.model}\0{kind}\0{text}".encode()).digest() for text in texts]
        with self._lock:
            found = {key: vector for key in keys if (vector := self._kept(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            computed = embed(list(missing.values())).astype(np.float32)
            found |= dict(zip(missing, computed, strict=True))
            with self._lock, self._file:
                self._file.executemany(
                    "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
                    [(key, found[key].tobytes()) for key in missing],
                )
        return np.stack([found[key] for key in keys])

    def _kept(self, key: bytes) -> Vectors | None:
        row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return np.frombuffer(row[0], np.float32) if row else None
