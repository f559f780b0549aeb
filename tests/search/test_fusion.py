"""Reciprocal rank fusion against values computed by hand."""

from __future__ import annotations

from uuid import UUID

from search.fusion import fuse
from search.retrieval.legs import Scored

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def test_scores_are_the_sum_of_reciprocal_ranks() -> None:
    fused = fuse(
        {"lexical": [Scored(A, 9.0), Scored(B, 5.0)], "vector": [Scored(B, 0.9), Scored(C, 0.8)]},
        {},
    )
    assert [candidate.chunk_id for candidate in fused] == [B, A, C]
    assert [candidate.score for candidate in fused] == [1 / 62 + 1 / 61, 1 / 61, 1 / 62]
    assert fused[0].legs == {"lexical": (2, 5.0), "vector": (1, 0.9)}


def test_weights_scale_a_leg() -> None:
    fused = fuse({"lexical": [Scored(A, 1.0)], "vector": [Scored(B, 1.0)]}, {"vector": 2.0})
    assert [(candidate.chunk_id, candidate.score) for candidate in fused] == [
        (B, 2 / 61),
        (A, 1 / 61),
    ]


def test_ties_go_to_the_better_lexical_rank() -> None:
    lexical, vector = [Scored(B, 9.0), Scored(A, 8.0)], [Scored(A, 0.9), Scored(B, 0.8)]
    assert [
        candidate.chunk_id for candidate in fuse({"lexical": lexical, "vector": vector}, {})
    ] == [B, A]


def test_other_ties_go_to_the_smaller_id() -> None:
    fused = fuse({"vector": [Scored(B, 1.0)], "vector other": [Scored(A, 1.0)]}, {})
    assert [candidate.chunk_id for candidate in fused] == [A, B]


def test_no_legs_give_no_candidates() -> None:
    assert fuse({}, {}) == []
