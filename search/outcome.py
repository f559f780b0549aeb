"""What a search found and how it went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from knowledge.models import Chunk
from search.access import AccessScope
from search.fusion import Fused
from search.request import SearchRequest

LATE = "Ran out of time (deadline_ms)."
_LEGS = frozenset({"retrieve", "filter", "filename", "embed_query"})


@dataclass(slots=True)
class Hit:
    """One result: the chunk with its document and base loaded, and where it ranked.

    `rerank` is rank and score among the passages that were reranked; `recency` is 1 for the newest document
    searched and 0 for the oldest, where age was asked for; `boost` is what editors multiply its score by;
    `duplicates` are the ids of passages that say the same and were collapsed into this one.
    """

    chunk: Chunk
    fused: Fused
    neighbours: list[Chunk] = field(default_factory=list)
    recency: float | None = None
    boost: float = 1.0
    rerank: tuple[int, float] | None = None
    duplicates: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Total:
    """How many passages match, counted or estimated."""

    value: int
    exact: bool


@dataclass(slots=True)
class SearchOutcome:
    """Everything a search found and how it went. `degraded` holds (operation, reason)."""

    request: SearchRequest
    scope: AccessScope
    hits: list[Hit] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    languages: tuple[str, ...] = ()
    synonyms: list[tuple[str, list[str]]] = field(default_factory=list)  # asked for, and added
    degraded: list[tuple[str, str]] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)
    unembedded: int = 0  # chunks that are found by their words only, their vectors being computed
    sources: list[dict[str, object]] = field(default_factory=list)
    facets: dict[str, object] = field(default_factory=dict)
    total: Total | None = None

    @property
    def lacks_legs(self) -> bool:
        """Whether a part of what was looked for is missing, for want of time or of a model."""
        return any(name in _LEGS for name, _ in self.degraded)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of a step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.timings_ms[step] = round(self.timings_ms.get(step, 0.0) + spent, 2)
