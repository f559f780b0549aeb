"""What is measured: single figures, spreads of times, and shares of a right answer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

BLOCK = 10  # questions that one system answers before the next one has its turn


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure. `size` counts chunks (documents, where documents are brought in)."""

    shape: str
    size: int
    system: str
    metric: str
    value: float
    unit: str


@dataclass(slots=True)
class Results:
    """All figures of a run, and what has to be said about them."""

    rows: list[Measurement] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, shape: str, size: int, system: str, metric: str, value: float, unit: str) -> None:
        """One more figure."""
        self.rows.append(Measurement(shape, size, system, metric, float(f"{value:.5g}"), unit))

    def add_times(self, shape: str, size: int, system: str, times: Times) -> None:
        """The median and the upper percentiles."""
        for metric, value in times.percentiles().items():
            self.add(shape, size, system, metric, value, "ms")

    def get(self, shape: str, size: int, system: str, metric: str) -> float | None:
        """The figure that was added last under these names."""
        wanted = (shape, size, system, metric)
        found = (
            row.value
            for row in reversed(self.rows)
            if (row.shape, row.size, row.system, row.metric) == wanted
        )
        return next(found, None)

    def remark(self, line: str) -> None:
        """Something to know about the figures, said once."""
        if line not in self.remarks:
            self.remarks.append(line)

    def as_json(self) -> list[dict[str, object]]:
        """The rows as they are kept."""
        return [asdict(row) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Times:
    """How long the same thing took, time after time, in milliseconds."""

    ms: Sequence[float]

    @property
    def median(self) -> float:
        """As long as half of them took at most."""
        return statistics.median(self.ms)

    def percentiles(self) -> dict[str, float]:
        """p50, p95 and p99."""
        if len(self.ms) < 2:
            return dict.fromkeys(("p50", "p95", "p99"), self.ms[0])
        cuts = statistics.quantiles(self.ms, n=100, method="inclusive")
        return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


def timed(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> tuple[float, _T]:
    """How long a call takes, in milliseconds, and what it gives."""
    started = time.perf_counter()
    value = call(*args, **kwargs)
    return (time.perf_counter() - started) * 1000, value


def alternate(
    systems: Mapping[str, Callable[[int], object]], questions: int, rounds: int
) -> dict[str, Times]:
    """Let systems answer the questions `0 … questions - 1` in turns, so that whatever else the machine
    does meanwhile hits them alike. The first pass warms up and is not counted; after each block
    another system begins."""
    spent: dict[str, list[float]] = {name: [] for name in systems}
    names = list(systems)
    for number in range(rounds + 1):
        for begin in range(0, questions, BLOCK):
            for name in names:
                for question in range(begin, min(begin + BLOCK, questions)):
                    ms, _ = timed(systems[name], question)
                    if number:
                        spent[name].append(ms)
            names = [*names[1:], names[0]]
    return {name: Times(ms) for name, ms in spent.items()}


def recall(found: Sequence[object], right: Collection[object], limit: int = 10) -> float:
    """The share of the `limit` right ones among the first `limit` found. More right ones than that are
    ties, of which any will do; where there are fewer, all of them have to be there."""
    possible = min(limit, len(right))
    return min(1.0, len(set(found[:limit]) & set(right)) / possible) if possible else 1.0


def overlap(one: Sequence[object], other: Sequence[object], limit: int) -> float:
    """The share of the first `limit` of one ranking that stands among the first of the other."""
    first = set(one[:limit])
    return len(first & set(other[:limit])) / len(first) if first else 1.0


def mean(values: Sequence[float]) -> float:
    """The mean; 1 of nothing, as nothing was missed."""
    return statistics.fmean(values) if values else 1.0
