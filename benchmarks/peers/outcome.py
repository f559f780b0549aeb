"""What came of a system on a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HYBRID = "Groundwork hybrid"


@dataclass(frozen=True, slots=True)
class Measured:
    """Times and rankings of one system; `ingest_s` leaves embedding out, `query_ms` the query's.

    `query_ms` are searches for the passages that are ranked, `few_ms` for the ten that an application asks for.

    `embedded_s` is ingestion with embedding, where the system does that itself. `keyword_empty` counts
    questions to which its words alone found nothing, None where that cannot be asked.
    """

    system: str
    version: str
    ingest_s: float | None
    query_ms: Sequence[float]
    few_ms: Sequence[float]
    rankings: Mapping[str, Sequence[str]]
    notes: str
    keyword_empty: int | None = None
    embedded_s: float | None = None


@dataclass(frozen=True, slots=True)
class NotRun:
    """A system that could not be measured, and why, in one line."""

    system: str
    reason: str


Outcome = Measured | NotRun
