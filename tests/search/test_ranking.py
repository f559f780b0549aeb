"""Boosts, recency, one passage a document and near-duplicates, with values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from knowledge.models import KnowledgeBase
from search.fusion import Fused
from search.ranking import (
    Ranked,
    across_scripts,
    best_per_document,
    boosted,
    by_recency,
    without_duplicates,
)
from search.retrieval.facts import Facts

OLDEST, MIDDLE, NEWEST = (datetime(year, 1, 1, tzinfo=UTC) for year in (2021, 2023, 2025))
BASE = UUID(int=1)


def one(
    number: int,
    score: float = 0.5,
    *,
    document: int | None = None,
    fingerprint: int = 0,
    boost: float = 1.0,
    source: str = "upload",
    language: str = "en",
    legs: tuple[str, ...] = ("lexical", "vector"),
    time: datetime = MIDDLE,
) -> Ranked:
    """A candidate; its document has the same number unless given, and it resembles no other."""
    ranks = dict.fromkeys(legs, (number, score))
    fused = Fused(UUID(int=number), score, reciprocal=1 / (60 + number), legs=ranks)
    document_id = UUID(int=1000 + (document or number))
    return Ranked(
        fused, Facts(document_id, BASE, fingerprint, language, boost, source, time), score
    )


def numbers(ranked: list[Ranked]) -> list[int]:
    return [candidate.fused.chunk_id.int for candidate in ranked]


def scores(ranked: list[Ranked]) -> list[float]:
    return [round(candidate.score, 6) for candidate in ranked]


def base(**source_boosts: float) -> KnowledgeBase:
    return KnowledgeBase(id=BASE, source_boosts=source_boosts)


def test_a_passage_in_another_script_is_judged_by_its_meaning() -> None:
    ranked = [
        one(1, 0.9, language="zh"),
        one(2, 0.45, language="zh", legs=("vector",)),
        one(3, 0.4, language="en", legs=("vector",)),
        one(4, 0.3, language="en"),
        one(5, 0.2, language="", legs=("vector",)),
        one(6, 0.1, language="ja", legs=("vector",)),
    ]
    found = across_scripts(ranked, "发票保留多久？", 2)
    # The third: 0.4 is half of its 0.8 by meaning, of which 0.75 count.
    assert numbers(found) == [1, 3, 2, 4, 5, 6]
    assert scores(found) == [0.9, 0.6, 0.45, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(("query", "legs"), [("how long?", 2), ("发票", 1), ("42?!", 2)])
def test_elsewhere_nothing_moves(query: str, legs: int) -> None:
    ranked = [one(1, 0.9), one(2, 0.4, legs=("vector",))]
    assert across_scripts(ranked, query, legs) == ranked


def test_boosts_of_document_and_source_multiply() -> None:
    ranked = [
        one(1, 0.8),
        one(2, 0.6, boost=2.0),
        one(3, 0.5, source="wiki"),
        one(4, 0.4, boost=0.5, source="wiki"),
    ]
    found = boosted(ranked, [base(wiki=3.0)])
    assert numbers(found) == [3, 2, 1, 4]
    assert scores(found) == [1.5, 1.2, 0.8, 0.6]
    assert [candidate.boost for candidate in found] == [3.0, 2.0, 1.0, 1.5]


def test_without_boosts_nothing_moves() -> None:
    ranked = [one(2, 0.0), one(1, 0.0), one(3, 0.7)]
    assert boosted(ranked, [base(wiki=3.0)]) == ranked
    assert boosted([], [base()]) == []


def test_a_source_of_another_base_is_not_boosted() -> None:
    elsewhere = KnowledgeBase(id=UUID(int=2), source_boosts={"upload": 9.0})
    assert scores(boosted([one(1)], [base(), elsewhere])) == [0.5]


def test_equal_scores_keep_their_first_order_then_the_id() -> None:
    late, early = one(9, 0.2, boost=2.0), one(5, 0.4)
    assert numbers(boosted([late, early], [base()])) == [5, 9], "the better reciprocal rank"
    twin = replace(early, fused=Fused(UUID(int=4), 0.4, early.fused.reciprocal))
    assert numbers(boosted([late, early, twin], [base()])) == [4, 5, 9]


@pytest.mark.parametrize(
    ("weight", "expected", "order"),
    [(1.0, [0.5, 0.25, 0.0], [3, 2, 1]), (0.5, [0.5, 0.375, 0.25], [3, 2, 1])],
)
def test_age_takes_its_share(weight: float, expected: list[float], order: list[int]) -> None:
    times = (OLDEST, datetime(2023, 1, 1, 12, tzinfo=UTC), NEWEST)  # the middle of 1461 days
    ranked = [one(number, 0.5, time=time) for number, time in enumerate(times, start=1)]
    found = by_recency(ranked, weight, OLDEST, NEWEST)
    assert numbers(found) == order
    assert [candidate.score for candidate in found] == pytest.approx(expected, abs=1e-3)
    assert [candidate.recency for candidate in found] == pytest.approx([1.0, 0.5, 0.0], abs=1e-3)


def test_a_small_share_of_age_leaves_a_clear_lead() -> None:
    ranked = [one(1, 1.0, time=OLDEST), one(2, 0.5, time=NEWEST)]
    assert numbers(by_recency(ranked, 0.2, OLDEST, NEWEST)) == [1, 2]
    assert numbers(by_recency(ranked, 0.9, OLDEST, NEWEST)) == [2, 1]


def test_in_a_range_without_length_nobody_is_older() -> None:
    found = by_recency([one(1, 0.4), one(2, 0.3)], 1.0, MIDDLE, MIDDLE)
    assert scores(found) == [0.4, 0.3]
    assert [candidate.recency for candidate in found] == [1.0, 1.0]


def test_times_outside_the_range_count_as_its_ends() -> None:
    ranked = [one(1, 0.4, time=NEWEST), one(2, 0.4, time=OLDEST)]
    found = by_recency(ranked, 1.0, MIDDLE, MIDDLE.replace(year=2024))
    assert [candidate.recency for candidate in found] == [1.0, 0.0]


def test_the_best_passage_stands_for_its_document() -> None:
    ranked = [one(1, document=7), one(2, document=8), one(3, document=7), one(4, document=9)]
    assert numbers(best_per_document(ranked)) == [1, 2, 4]
    assert best_per_document([]) == []


def test_duplicates_are_taken_in_and_the_limit_is_filled() -> None:
    ranked = [
        one(1, fingerprint=0b1000),
        one(2, fingerprint=0b1001),
        one(3, fingerprint=0xFFFF),
        one(4, fingerprint=0b1011),
        one(5, fingerprint=0xFFFE),
        one(6, fingerprint=0xFF << 30),
    ]
    found = without_duplicates(ranked, 3)
    assert numbers(found) == [1, 3, 6]
    assert [[taken.int for taken in candidate.duplicates] for candidate in found] == [
        [2, 4],
        [5],
        [],
    ]
    # What stands behind a full window is still taken in where it says the same.
    assert numbers(without_duplicates(ranked, 1)) == [1]
    assert [taken.int for taken in without_duplicates(ranked, 1)[0].duplicates] == [2, 4]


def test_passages_without_a_fingerprint_are_never_collapsed() -> None:
    assert numbers(without_duplicates([one(1), one(2)], 5)) == [1, 2]
