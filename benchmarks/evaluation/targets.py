"""What retrieval is expected to reach, and whether a run did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.evaluation.cross_language import TWIN_METRICS, TWIN_SYSTEMS, TWINS
from benchmarks.evaluation.report import Results, aligned
from benchmarks.evaluation.systems import BM25, RERANK

TOLERANCE = 0.01  # of nDCG@10 that words may lose to the reference on a single set
TWIN_SHARE = 0.9
SAME_QUESTIONS = "hybrid, same questions"  # hybrid on the questions that were reranked


@dataclass(frozen=True, slots=True)
class Target:
    """One expectation; `met` is None where it was not measured."""

    text: str
    met: bool | None
    measured: str

    @classmethod
    def above(cls, text: str, value: float | None, bound: float | None, *, equal: bool) -> Target:
        """`value` has to be above `bound`, or may be equal."""
        if value is None or bound is None:
            return cls(text, None, "")
        met = value >= bound if equal else value > bound
        return cls(text, met, f"{value:.4f} beside {bound:.4f}")


def targets(results: Results) -> list[Target]:
    """Every expectation, in the order of the tables."""
    return [
        Target.above(
            "lexical at least bm25s on the mean",
            results.mean("lexical"), results.mean(BM25), equal=True,
        ),
        _nowhere_far_below(results),
        *_hybrid(results),
        Target.above(
            "rerank above hybrid on the mean (same questions)",
            results.mean(RERANK), results.mean(SAME_QUESTIONS), equal=False,
        ),
        *_twins(results),
    ]  # fmt: skip


def _nowhere_far_below(results: Results) -> Target:
    text = f"lexical nowhere more than {TOLERANCE} under bm25s"
    losses = {}
    for facts in results.sets:
        words, reference = results.get(facts.name, "lexical"), results.get(facts.name, BM25)
        if words is not None and reference is not None:
            losses[facts.name] = reference - words
    if not losses:
        return Target(text, None, "")
    under = {name: loss for name, loss in losses.items() if loss > TOLERANCE}
    named = under or {(worst := max(losses, key=lambda name: losses[name])): losses[worst]}
    return Target(
        text, not under, ", ".join(f"{name} {-loss:+.4f}" for name, loss in named.items())
    )


def _hybrid(results: Results) -> Iterator[Target]:
    for group, language in (("en", "English"), ("zh", "Chinese")):
        for leg in ("lexical", "semantic"):
            yield Target.above(
                f"hybrid above {leg} on the mean, {language}",
                results.mean("hybrid", group=group), results.mean(leg, group=group), equal=False,
            )  # fmt: skip


def _twins(results: Results) -> Iterator[Target]:
    for system in TWIN_SYSTEMS:
        for metric in TWIN_METRICS.values():
            share = results.get(TWINS, system, metric)
            yield Target.above(
                f"{metric} at least {TWIN_SHARE}, {system}", share, TWIN_SHARE, equal=True
            )


def target_table(results: Results) -> str:
    """Met, not met or not measured, with the figures."""
    words = {True: "met", False: "NOT MET", None: "not measured"}
    lines = [["target", "state", "measured"]]
    lines += [[target.text, words[target.met], target.measured] for target in targets(results)]
    return aligned(lines)
