"""What speed is expected to reach, and whether a run did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.evaluation.report import aligned
from benchmarks.speed.measurement import Measurement, Results

MOST_OVER_SQL = 2.0
MOST_GROWTH = 2.0
LEAST_RECALL = 0.98
MOST_OVERHEAD = 0.25
LARGE_SIZES = (100_000, 1_000_000)
GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Target:
    """One expectation; `met` is None where it was not measured."""

    text: str
    met: bool | None
    measured: str


def add_growth(results: Results) -> None:
    """How p50 grows from 100 thousand to a million chunks, if both were measured."""
    small, large = LARGE_SIZES
    for system in ("http", "service", "sql"):
        before = results.get("one base", small, system, "p50")
        after = results.get("one base", large, system, "p50")
        if before and after:
            results.add(GROWTH, large, system, "growth_p50", after / before, "ratio")


def targets(results: Results) -> list[Target]:
    """Every expectation."""
    return [
        *_each(results, "http_over_sql_p50", MOST_OVER_SQL, "HTTP at most 2 × hand-written SQL"),
        _most(results, "growth_p50", MOST_GROWTH, "p50 grows at most 2 × from 100 thousand to 1 million", ("http", "service")),
        _least(results, "recall@10", LEAST_RECALL, "recall@10 of the vector leg at least 0.98 everywhere"),
        _least(results, "limit_filled", 1.0, "`limit` filled whenever enough matches exist"),
        _most(results, "ingest_overhead", MOST_OVERHEAD, "at most 25 % of ingestion beyond extraction and embedding", ("1 worker",)),
        _most(results, "deadlocks", 0, "no deadlock among workers"),
        _most(results, "failed", 0, "no document fails"),
    ]  # fmt: skip


def _rows(results: Results, metric: str, systems: tuple[str, ...] = ()) -> list[Measurement]:
    rows = [row for row in results.rows if row.metric == metric]
    if metric == "recall@10":
        rows = [
            row for row in rows if row.system == "service"
        ]  # not the depths that were only tried
    return [row for row in rows if not systems or row.system in systems]


def _each(results: Results, metric: str, bound: float, text: str) -> Iterator[Target]:
    rows = _rows(results, metric)
    if not rows:
        yield Target(text, None, "")
    for row in rows:
        name = f"{text}: {row.shape}, {row.size:,} chunks"
        yield Target(name, row.value <= bound, f"{row.value:.2f}")


def _most(results: Results, metric: str, bound: float, text: str, systems: tuple[str, ...] = ()) -> Target:  # fmt: skip
    rows = _rows(results, metric, systems)
    if not rows:
        return Target(text, None, "")
    worst = max(rows, key=lambda row: row.value)
    return Target(text, worst.value <= bound, _shown(worst))


def _least(results: Results, metric: str, bound: float, text: str) -> Target:
    rows = _rows(results, metric)
    if not rows:
        return Target(text, None, "")
    worst = min(rows, key=lambda row: row.value)
    return Target(text, worst.value >= bound, _shown(worst))


def _shown(row: Measurement) -> str:
    return f"at worst {row.value:.4g} ({row.shape}, {row.size:,}, {row.system})"


def target_table(results: Results) -> str:
    """Met, not met or not measured, with the figures."""
    words = {True: "met", False: "NOT MET", None: "not measured"}
    lines = [["target", "state", "measured"]]
    lines += [[target.text, words[target.met], target.measured] for target in targets(results)]
    return aligned(lines)
