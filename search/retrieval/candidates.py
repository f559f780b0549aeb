"""Which passages of a large base are worth scoring for a query.

The common words of a question stand in a good part of a base; scoring all those passages takes longer the
larger the base is, and they rank low: what decides is the rare words. So the candidates are the
passages with the rarest words, as many words as stay within a budget of passages. Where even the
rarest word is common, a second word has to stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.lexical.weights import quoted_lexeme, tsquery_literal

# Passages to score for one query. With 5,000 the ten best are those of the complete ranking and of the
# hundred best 97, measured on 100,000 chunks (`make bench`); it takes about as long as the vectors.
BUDGET = 5_000
# Of a single word that is everywhere, so many passages are scored: the others differ from them in how
# often it stands in them only.
MOST = 4 * BUDGET


@dataclass(frozen=True, slots=True)
class Candidates:
    """A `tsquery` literal; `complete` when no word of the query was left out of it."""

    query: str
    terms: tuple[str, ...]
    complete: bool

    def or_else(self, other: Candidates) -> Candidates:
        """Those of both."""
        queries = [f"({one.query})" for one in (self, other) if one.query]
        terms = (*self.terms, *other.terms)
        return Candidates(" | ".join(queries), terms, self.complete and other.complete)


def choose_candidates(
    terms: Sequence[str], frequencies: Mapping[str, int], total: int, budget: int = BUDGET
) -> Candidates:
    """The candidates among `total` passages, given in how many of them each term stands."""
    rarest = sorted(terms, key=lambda term: (frequencies.get(term, 0), term))
    chosen = _affordable(rarest, frequencies, budget)
    if len(chosen) == len(rarest):
        return Candidates(tsquery_literal(rarest), tuple(rarest), complete=True)
    if chosen:
        return Candidates(tsquery_literal(chosen), tuple(rarest), complete=False)
    return Candidates(_pairs(rarest, frequencies, total, budget), tuple(rarest), complete=False)


def _affordable(rarest: Sequence[str], frequencies: Mapping[str, int], budget: int) -> list[str]:
    chosen: list[str] = []
    expected = 0
    for term in rarest:
        expected += frequencies.get(term, 0)
        if expected > budget:
            break
        chosen.append(term)
    return chosen


def _pairs(rarest: Sequence[str], frequencies: Mapping[str, int], total: int, budget: int) -> str:
    """The rarest term together with others, the rarer first; alone where it is the only one."""
    first, others = rarest[0], rarest[1:]
    beside: list[str] = []
    expected = 0.0
    for term in others:
        expected += frequencies[first] * frequencies[term] / max(total, 1)
        if beside and expected > budget:
            break
        beside.append(term)
    if not beside:
        return quoted_lexeme(first)
    return f"{quoted_lexeme(first)} & ({tsquery_literal(beside)})"
