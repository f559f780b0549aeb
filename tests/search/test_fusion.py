"""Mixing scores, against values computed by hand."""

from __future__ import annotations

from uuid import UUID

import pytest

from search.fusion import fuse
from search.retrieval.legs import Scored

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def test_scores_are_stretched_from_0_to_1_and_averaged() -> None:
    fused = fuse(
        {
            "lexical": [Scored(A, 8.0), Scored(B, 6.0)],
            "vector": [Scored(B, 0.9), Scored(C, 0.5), Scored(A, 0.4)],
        }
    )
    # By words A 8/8, B 6/8 (BM25 starts from 0); by meaning B (0.9 - 0.4)/0.5, C 0.1/0.5, A 0.
    assert [candidate.chunk_id for candidate in fused] == [B, A, C]
    assert [candidate.score for candidate in fused] == pytest.approx([0.875, 0.5, 0.1])
    assert fused[0].legs == {"lexical": (2, 6.0), "vector": (1, 0.9)}


def test_only_the_best_fifty_of_a_leg_have_a_score() -> None:
    ids = [UUID(int=number) for number in range(1, 61)]
    lexical = [Scored(chunk_id, 100.0 - rank) for rank, chunk_id in enumerate(ids)]
    fused = fuse({"lexical": lexical})
    assert [candidate.chunk_id for candidate in fused] == ids
    # The 50th has 51 points; the 25th has 76: (76 - 51) / 49.
    assert fused[0].score == 1.0
    assert fused[24].score == pytest.approx(25 / 49)
    assert {candidate.score for candidate in fused[49:]} == {0.0}


def test_more_candidates_do_not_change_the_first_fifty() -> None:
    ids = [UUID(int=number) for number in range(1, 400)]
    lexical = [Scored(chunk_id, 1000.0 - 2 * rank) for rank, chunk_id in enumerate(ids)]
    vector = [Scored(chunk_id, 1 - rank / 400) for rank, chunk_id in enumerate(reversed(ids))]
    few = fuse({"lexical": lexical[:100], "vector": vector[:100]})
    many = fuse({"lexical": lexical, "vector": vector})
    assert [c.chunk_id for c in few[:50]] == [c.chunk_id for c in many[:50]]


def test_a_leg_without_results_takes_no_share() -> None:
    fused = fuse({"lexical": [], "vector": [Scored(A, 0.9), Scored(B, 0.1)]})
    assert [(candidate.chunk_id, candidate.score) for candidate in fused] == [(A, 1.0), (B, 0.0)]


def test_ties_go_to_the_smaller_id() -> None:
    fused = fuse({"vector": [Scored(B, 1.0)], "vector other": [Scored(A, 1.0)]})
    assert [candidate.chunk_id for candidate in fused] == [A, B]


def test_no_legs_give_no_candidates() -> None:
    assert fuse({}) == []
