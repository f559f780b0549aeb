"""The metrics against trec_eval (pytrec-eval-terrier 0.5.11, measures ndcg_cut.10, recall.10/100, recip_rank)."""

from __future__ import annotations

import pytest

from benchmarks.evaluation.metrics import mean_over_questions, measure

JUDGED: dict[str, dict[str, float]] = {
    "graded": {"a": 3, "b": 1, "c": 2},
    "late": {"x": 1},
    "many": {f"d{number}": 1 for number in range(12)},
    "swapped": {"m": 1, "n": 2},
}
RANKED = {
    "graded": ["z", "c", "a", "y"],
    "late": [*(f"n{number}" for number in range(10)), "x"],
    "many": ["d3", "u", "d5", "v", "d0", "d1", "w", "d9", "d10", "d11", "d2"],
    "swapped": ["n", "m"],
}
TREC_EVAL = {
    "graded": {"ndcg@10": 0.5799960084920718, "recall@10": 2 / 3, "recall@100": 2 / 3},
    "late": {"ndcg@10": 0.0, "recall@10": 0.0, "recall@100": 1.0},
    "many": {"ndcg@10": 0.6929852696575347, "recall@10": 7 / 12, "recall@100": 2 / 3},
    "swapped": {"ndcg@10": 1.0, "recall@10": 1.0, "recall@100": 1.0},
}


@pytest.mark.parametrize("question", JUDGED)
def test_every_metric_is_what_trec_eval_says(question: str) -> None:
    measured = measure(RANKED[question], JUDGED[question])
    assert {key: measured[key] for key in TREC_EVAL[question]} == pytest.approx(TREC_EVAL[question])


def test_the_reciprocal_rank_ends_at_ten() -> None:
    assert measure(RANKED["graded"], JUDGED["graded"])["mrr@10"] == 0.5
    assert measure(RANKED["late"], JUDGED["late"])["mrr@10"] == 0.0  # trec_eval without a cut: 1/11


def test_means_are_over_the_ranked_questions_only() -> None:
    ranked = {key: RANKED[key] for key in ("graded", "swapped")}
    assert mean_over_questions(ranked, JUDGED)["ndcg@10"] == pytest.approx(
        (0.5799960084920718 + 1) / 2
    )


def test_nothing_found_is_zero() -> None:
    assert set(measure([], {"a": 1.0}).values()) == {0.0}
