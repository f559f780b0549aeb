"""Rows, means, tables and targets of a run."""

from __future__ import annotations

import pytest

from benchmarks.evaluation.report import Results, SetFacts, main_table, other_table
from benchmarks.evaluation.targets import SAME_QUESTIONS, Target, target_table, targets


def results(values: dict[tuple[str, str], float], *, languages: dict[str, str]) -> Results:
    found = Results([SetFacts(name, language, 10, 10, 5) for name, language in languages.items()])
    for (name, system), value in values.items():
        found.add(name, system, {"ndcg@10": value})
    return found


def state(found: Results, beginning: str) -> Target:
    return next(target for target in targets(found) if target.text.startswith(beginning))


def test_means_leave_mixes_and_the_sample_out() -> None:
    found = results(
        {("scifact", "lexical"): 0.6, ("xquad-zh", "lexical"): 0.8, ("en-mix", "lexical"): 0.1, ("sample", "lexical"): 1.0},
        languages={"scifact": "en", "xquad-zh": "zh", "en-mix": "en", "sample": "en+zh"},
    )  # fmt: skip
    assert found.mean("lexical") == pytest.approx(0.7)
    assert found.mean("lexical", group="en") == 0.6
    assert found.mean("lexical", group="code") is None


def test_a_mean_needs_a_value_on_every_set() -> None:
    found = results({("scifact", "hybrid"): 0.6}, languages={"scifact": "en", "cacm": "en"})
    assert found.mean("hybrid") is None


def test_rows_hold_sets_and_means() -> None:
    found = results({("scifact", "lexical"): 0.61239}, languages={"scifact": "en"})
    row = {"system": "lexical", "metric": "ndcg@10", "value": 0.6124}
    assert found.rows() == [
        {"set": "scifact", "language": "en", **row},
        {"set": "mean", "language": "", **row},
        {"set": "mean en", "language": "en", **row},
    ]


def test_a_table_says_when_a_set_was_cut() -> None:
    found = Results([SetFacts("rgb-zh", "zh", 1000, 10_585, 100)])
    found.add("rgb-zh", "lexical", {"ndcg@10": 0.5, "recall@10": 0.25})
    assert "1,000 of 10,585" in main_table(found)
    assert "0.500" in main_table(found)
    assert "0.250" in other_table(found)


def test_the_loss_on_a_single_set_is_named() -> None:
    found = results(
        {("cacm", "bm25s"): 0.48, ("cacm", "lexical"): 0.46, ("scifact", "bm25s"): 0.6, ("scifact", "lexical"): 0.7},
        languages={"cacm": "en", "scifact": "en"},
    )  # fmt: skip
    assert state(found, "lexical at least").met
    below = state(found, "lexical nowhere")
    assert (below.met, below.measured) == (False, "cacm -0.0200")


def test_a_loss_within_the_tolerance_is_met() -> None:
    found = results({("cacm", "bm25s"): 0.48, ("cacm", "lexical"): 0.475}, languages={"cacm": "en"})
    assert state(found, "lexical nowhere").met


def test_rerank_is_held_against_the_same_questions() -> None:
    found = results(
        {("cacm", "hybrid"): 0.5, ("cacm", SAME_QUESTIONS): 0.7, ("cacm", "hybrid+rerank"): 0.6},
        languages={"cacm": "en"},
    )
    assert state(found, "rerank").met is False


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert {target.met for target in targets(Results())} == {None}
    assert "not measured" in target_table(Results())


def test_one_remark_names_every_set_that_it_is_true_of() -> None:
    found = Results()
    found.remark("cacm", "No row.")
    found.remark("scifact", "No row.")
    assert found.remark_lines() == ["No row. (cacm, scifact)"]
