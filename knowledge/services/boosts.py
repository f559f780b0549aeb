"""Factors that editors give to the scores of documents and sources."""

from __future__ import annotations

LEAST_BOOST, MOST_BOOST = 0.1, 10.0
BOOST_RULE = f"A factor from {LEAST_BOOST:g} to {MOST_BOOST:g}; 1 changes nothing."


def is_boost(factor: object) -> bool:
    """Whether this is a number in the permitted range; not-a-number is in none."""
    return (
        isinstance(factor, int | float)
        and not isinstance(factor, bool)
        and LEAST_BOOST <= factor <= MOST_BOOST
    )
