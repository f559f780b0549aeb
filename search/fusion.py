"""Mixes the legs: each leg's scores from 0 to 1 over its best fifty, then their weighted mean.

Mixing scores beats reciprocal rank fusion on every group of sets measured (docs/search.md): a passage
that stands out in one leg keeps its lead. What lies beyond the fiftieth place of every leg has no score and
is ordered by reciprocal ranks (Cormack, Clarke, Büttcher 2009: Σ 1 / (60 + rank)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from search.retrieval.legs import Scored

SPAN = 50  # places over which a leg's scores are stretched; the same whatever the limit
K = 60


@dataclass(slots=True)
class Fused:
    """A candidate with its fused score from 0 to 1 and, by leg, its rank and score there."""

    chunk_id: UUID
    score: float = 0.0
    reciprocal: float = 0.0
    legs: dict[str, tuple[int, float]] = field(default_factory=dict)


def fuse(legs: Mapping[str, Sequence[Scored]]) -> list[Fused]:
    """All candidates, best first. A leg that lacks a candidate adds nothing; ties go to the id."""
    present = {name: scored for name, scored in legs.items() if scored}
    candidates: dict[UUID, Fused] = {}
    for name, scored in present.items():
        lowest, span = _range(name, scored)
        for rank, hit in enumerate(scored, start=1):
            fused = candidates.setdefault(hit.chunk_id, Fused(hit.chunk_id))
            share = max(0.0, (hit.score - lowest) / span) if span else 1.0
            fused.score += share / len(present)
            fused.reciprocal += 1 / (K + rank)
            fused.legs[name] = (rank, hit.score)
    return sorted(candidates.values(), key=_order)


def _range(name: str, scored: Sequence[Scored]) -> tuple[float, float]:
    """The lowest score that counts and how far above it the best one is."""
    last = scored[min(SPAN, len(scored)) - 1].score
    # BM25 has a true zero: with few matches the last of them is still a match.
    lowest = 0.0 if name == "lexical" and len(scored) < SPAN else last
    return lowest, scored[0].score - lowest


def _order(candidate: Fused) -> tuple[float, float, UUID]:
    return (-candidate.score, -candidate.reciprocal, candidate.chunk_id)
