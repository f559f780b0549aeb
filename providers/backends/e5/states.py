"""Token states of passages, packed to a byte a number, and the bounded store of recent ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from providers.base import Vectors

_LEVELS = 127


@dataclass(frozen=True, slots=True)
class PackedStates:
    """Unit vectors `(tokens, hidden)` as integers, with a scale per token."""

    numbers: NDArray[np.int8]
    scales: Vectors

    @classmethod
    def pack(cls, states: Vectors) -> Self:
        """Round the states: a cosine changes by about 0.002."""
        scales = np.maximum(np.abs(states).max(axis=1), np.float32(1e-9)) / np.float32(_LEVELS)
        return cls(np.rint(states / scales[:, np.newaxis]).astype(np.int8), scales)

    @property
    def size(self) -> int:
        """In bytes."""
        return self.numbers.nbytes + self.scales.nbytes

    def best_matches(self, question: Vectors) -> Vectors:
        """For each of the unit vectors `(n, hidden)` the cosine of the token that is most like it."""
        products: Vectors = np.dot(question, self.numbers.T.astype(np.float32))
        best: Vectors = (products * self.scales).max(axis=1)
        return best


class RecentStates:
    """The passages last read, by the digest of their text; those longest unused go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, PackedStates] = OrderedDict()
        self.size = 0  # in bytes

    def get(self, key: bytes) -> PackedStates | None:
        """The states if they are kept; they then count as just used."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: bytes, states: PackedStates) -> None:
        """Keep the states, within the bound."""
        with self._lock:
            if replaced := self._kept.pop(key, None):
                self.size -= replaced.size
            self._kept[key] = states
            self.size += states.size
            while self.size > self._max_bytes:
                _, oldest = self._kept.popitem(last=False)
                self.size -= oldest.size
