"""Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): Σ weight / (k + rank), ranks from 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from search.retrieval.legs import Scored

K = 60


@dataclass(slots=True)
class Fused:
    """A candidate with its fused score and, by leg, its rank and score there."""

    chunk_id: UUID
    score: float = 0.0
    legs: dict[str, tuple[int, float]] = field(default_factory=dict)


def fuse(legs: Mapping[str, Sequence[Scored]], weights: Mapping[str, float]) -> list[Fused]:
    """All candidates, best first. A leg that lacks a candidate adds nothing. Ties go to the better
    lexical rank (a code or name that stands there is surer than a likeness), then to the id."""
    candidates: dict[UUID, Fused] = {}
    for name, scored in legs.items():
        for rank, hit in enumerate(scored, start=1):
            fused = candidates.setdefault(hit.chunk_id, Fused(hit.chunk_id))
            fused.score += weights.get(name, 1.0) / (K + rank)
            fused.legs[name] = (rank, hit.score)
    return sorted(candidates.values(), key=_order)


def _order(candidate: Fused) -> tuple[float, float, UUID]:
    lexical = candidate.legs.get("lexical")
    return (-candidate.score, lexical[0] if lexical else math.inf, candidate.chunk_id)
