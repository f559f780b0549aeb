"""Mixing the first stage's scores with the reranker's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.reranking import mix


def _order(scores: list[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def test_each_side_is_stretched_and_weighed() -> None:
    mixed = mix([3.0, 2.0, 1.0], [0.2, 0.6, 0.4], 0.5)
    assert mixed == pytest.approx([0.5 * 1.0 + 0.0, 0.5 * 0.5 + 0.5, 0.0 + 0.5 * 0.5])


@pytest.mark.parametrize(("weight", "order"), [(0.0, [0, 1, 2]), (1.0, [2, 0, 1])])
def test_the_extreme_weights_follow_one_side(weight: float, order: list[int]) -> None:
    assert _order(mix([0.9, 0.8, 0.1], [0.5, 0.1, 0.7], weight)) == order


def test_the_unreached_stay_in_order_behind_the_reached() -> None:
    mixed = mix([0.9, 0.8, 0.7, 0.6], [0.1, 0.9, None, None], 0.6)
    assert _order(mixed) == [1, 0, 2, 3]


@pytest.mark.parametrize("second", [[None, None, None], [0.3, 0.3, 0.3], [0.3, None, None]])
def test_second_scores_that_say_nothing_change_no_order(second: list[float | None]) -> None:
    assert _order(mix([0.9, 0.5, 0.4], second, 0.5)) == [0, 1, 2]


def test_equal_first_scores_leave_the_order_to_the_second() -> None:
    assert _order(mix([0.5, 0.5, 0.5], [0.1, 0.3, 0.2], 0.5)) == [1, 2, 0]


def test_no_candidates_give_no_scores() -> None:
    assert mix([], [], 0.5) == []


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_its_range_is_a_mistake(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        mix([1.0], [1.0], weight)


def test_lists_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="argument"):
        mix([1.0, 0.5], [1.0], 0.5)


_scores = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(_scores, st.data())
def test_scores_stay_between_0_and_1_and_the_reached_in_front(
    first: list[float], data: st.DataObject
) -> None:
    first.sort(reverse=True)
    reached = data.draw(st.integers(0, len(first)))
    second: list[float | None] = [data.draw(st.floats(-1, 1)) for _ in range(reached)]
    mixed = mix(first, second + [None] * (len(first) - reached), data.draw(st.floats(0, 1)))
    assert all(0 <= score <= 1 + 1e-9 for score in mixed)
    front, behind = mixed[:reached], mixed[reached:]
    if front and behind:
        assert min(front) >= behind[0]
    assert behind == sorted(behind, reverse=True)
