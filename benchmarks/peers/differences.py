"""Whether a difference in nDCG@10 is more than chance: a paired bootstrap over the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.evaluation.metrics import Judgements, measure
from benchmarks.peers.outcome import Measured

_SAMPLES = 4_000
_SEED = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """What `system` has over `other` on the mean, and the interval that 95 % of resamples lie in."""

    system: str
    other: str
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        beyond = "" if self.low > 0 or self.high < 0 else ", which may be chance"
        return f"{self.system} over {self.other}: {self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]{beyond}"


def difference(
    first: Measured, second: Measured, judgements: Mapping[str, Judgements]
) -> Difference:
    """Question by question, on those that both answered."""
    keys = [key for key in first.rankings if key in second.rankings]
    gaps = np.array(
        [_ndcg(first, key, judgements) - _ndcg(second, key, judgements) for key in keys]
    )
    drawn = np.random.default_rng(_SEED).integers(0, len(gaps), (_SAMPLES, len(gaps)))
    low, high = np.percentile(gaps[drawn].mean(axis=1), [2.5, 97.5])
    return Difference(first.system, second.system, float(gaps.mean()), float(low), float(high))


def _ndcg(measured: Measured, key: str, judgements: Mapping[str, Judgements]) -> float:
    return measure(measured.rankings[key], judgements[key])["ndcg@10"]


def from_first(
    measured: Sequence[Measured], judgements: Mapping[str, Judgements]
) -> list[Difference]:
    """The first system beside each other one."""
    return [difference(measured[0], other, judgements) for other in measured[1:]]
