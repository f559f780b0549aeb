"""Rows and tables of what was measured beside what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.evaluation.metrics import mean_over_questions
from benchmarks.evaluation.report import aligned
from benchmarks.evaluation.sets import JudgedSet
from benchmarks.peers.differences import Difference, from_first
from benchmarks.peers.outcome import HYBRID, Measured, NotRun, Outcome

Row = dict[str, object]
_UNITS = {
    "ndcg@10": "",
    "recall@100": "",
    "ingest": "documents/s",
    "ingest_with_embedding": "documents/s",
    "search_p50": "ms",
    "search_p95": "ms",
    "search_10_p50": "ms",
    "search_10_p95": "ms",
    "keyword_empty": "questions",
}
_HEADS = {
    "ndcg@10": "nDCG@10",
    "recall@100": "Recall@100",
    "ingest": "docs/s",
    "ingest_with_embedding": "with embedding",
    "search_p50": "p50 ms",
    "search_p95": "p95 ms",
    "search_10_p50": "p50 of 10",
    "search_10_p95": "p95 of 10",
    "keyword_empty": "no words found",
}
_LEAST_S = 0.001  # a shorter ingestion has no rate
_DIGITS = {
    "ndcg@10": 3,
    "recall@100": 3,
    "search_p50": 1,
    "search_p95": 1,
    "search_10_p50": 1,
    "search_10_p95": 1,
}


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """Every system on one set."""

    judged: JudgedSet
    passages: int
    outcomes: Sequence[Outcome]


def rows(results: Sequence[SetOutcome]) -> list[Row]:
    """As bench.json has them; a system that was not run has one row with the reason in place of a value."""
    return [row for result in results for outcome in result.outcomes for row in _rows(result, outcome)]  # fmt: skip


def _rows(result: SetOutcome, outcome: Outcome) -> list[Row]:
    head: Row = {
        "shape": result.judged.name,
        "size": len(result.judged.documents),
        "system": outcome.system,
    }
    if isinstance(outcome, NotRun):
        return [{**head, "metric": "not run", "value": None, "unit": "", "reason": outcome.reason}]
    return [
        {**head, "metric": metric, "value": round(value, 4), "unit": _UNITS[metric]}
        for metric, value in values(result.judged, outcome).items()
    ]


def values(judged: JudgedSet, measured: Measured) -> Mapping[str, float]:
    """Metric → value, without those that a system cannot have."""
    quality = mean_over_questions(measured.rankings, judged.judgements)
    found: dict[str, float | None] = {
        "ndcg@10": quality["ndcg@10"],
        "recall@100": quality["recall@100"],
        "ingest": _per_second(judged, measured.ingest_s),
        "ingest_with_embedding": _per_second(judged, measured.embedded_s),
        "search_p50": float(np.percentile(measured.query_ms, 50)),
        "search_p95": float(np.percentile(measured.query_ms, 95)),
        "search_10_p50": float(np.percentile(measured.few_ms, 50)),
        "search_10_p95": float(np.percentile(measured.few_ms, 95)),
        "keyword_empty": measured.keyword_empty,
    }
    return {metric: value for metric, value in found.items() if value is not None}


def _per_second(judged: JudgedSet, seconds: float | None) -> float | None:
    """None too where nothing is built (an array that is kept as it is)."""
    return len(judged.documents) / seconds if seconds and seconds > _LEAST_S else None


def table(result: SetOutcome) -> str:
    """One set: systems as rows; those not run below, with their reasons."""
    measured = [outcome for outcome in result.outcomes if isinstance(outcome, Measured)]
    lines = [["system", "", *_HEADS.values()]]
    for outcome in measured:
        found = values(result.judged, outcome)
        lines.append([outcome.system, "", *(_cell(metric, found.get(metric)) for metric in _HEADS)])
    title = (
        f"{result.judged.name}: {len(result.judged.documents):,} documents in {result.passages:,} "
        f"passages, {len(result.judged.questions):,} questions"
    )
    missing = [f"{o.system}: not run: {o.reason}" for o in result.outcomes if isinstance(o, NotRun)]
    return "\n".join([title, aligned(lines), *missing, *map(str, differences(result))])


def differences(result: SetOutcome) -> list[Difference]:
    """Groundwork's hybrid beside each other system, when it was measured."""
    measured = [outcome for outcome in result.outcomes if isinstance(outcome, Measured)]
    if not measured or measured[0].system != HYBRID:
        return []
    return from_first(measured, result.judged.judgements)


def _cell(metric: str, value: float | None) -> str:
    return "–" if value is None else f"{value:,.{_DIGITS.get(metric, 0)}f}"


def facts(results: Sequence[SetOutcome]) -> Row:
    """Beside the rows: versions and configurations, each system once, and how sure differences are."""
    gaps = [{"set": r.judged.name, **asdict(gap)} for r in results for gap in differences(r)]
    return {"systems": _systems(results), "ndcg@10_differences": gaps}


def _systems(results: Sequence[SetOutcome]) -> list[Row]:
    found: dict[str, Row] = {
        outcome.system: {
            "system": outcome.system,
            "version": outcome.version,
            "notes": outcome.notes,
        }
        for result in results
        for outcome in result.outcomes
        if isinstance(outcome, Measured)
    }
    return list(found.values())
