"""What happens to the fused list before it is shown: boosts, recency, one passage a document, and
one for passages that say the same. Each is a plain function from one list to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from knowledge.lexical.fingerprint import is_near_duplicate
from knowledge.lexical.language import may_share_words
from knowledge.models import KnowledgeBase
from search.fusion import Fused
from search.retrieval.facts import Facts, read_facts

# With this a Chinese question finds the English twin of its passage among the first ten as often as by
# meaning alone, and what is written in the question's language stays before it (docs/search.md).
_OTHER_SCRIPT = 0.75


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its facts; `score` is what it is ordered by, `boost` included."""

    fused: Fused
    facts: Facts
    score: float
    boost: float = 1.0
    recency: float | None = None
    duplicates: tuple[UUID, ...] = ()


def with_facts(fused: Sequence[Fused]) -> list[Ranked]:
    """The candidates that still exist, in their order."""
    facts = read_facts([candidate.chunk_id for candidate in fused])
    return [
        Ranked(candidate, facts[candidate.chunk_id], candidate.score)
        for candidate in fused
        if candidate.chunk_id in facts
    ]


def across_scripts(ranked: Sequence[Ranked], query: str, legs: int) -> list[Ranked]:
    """Passages in another script than the query's cannot hold its words: having none tells nothing about
    them. Of several `legs` they have but the one of meaning, which then counts `_OTHER_SCRIPT` of a whole."""
    if legs < 2:
        return list(ranked)
    foreign: dict[str, bool] = {}
    for candidate in ranked:
        language = candidate.facts.language
        if language not in foreign:
            foreign[language] = not may_share_words(query, language)
    if not any(foreign.values()):
        return list(ranked)

    def score(candidate: Ranked) -> float:
        if "lexical" in candidate.fused.legs or not foreign[candidate.facts.language]:
            return candidate.score
        return min(1.0, candidate.score * legs * _OTHER_SCRIPT)

    return _sorted(replace(candidate, score=score(candidate)) for candidate in ranked)


def boosted(ranked: Sequence[Ranked], bases: Sequence[KnowledgeBase]) -> list[Ranked]:
    """Scores times the factors that editors gave to documents and sources."""
    by_base: Mapping[UUID, Mapping[str, float]] = {base.id: base.source_boosts for base in bases}

    def factor(facts: Facts) -> float:
        source = by_base.get(facts.knowledge_base_id, {}).get(facts.source, 1.0)
        return facts.boost * float(source)

    factors = [factor(candidate.facts) for candidate in ranked]
    if all(value == 1.0 for value in factors):
        return list(ranked)
    return _sorted(
        replace(candidate, score=candidate.score * value, boost=value)
        for candidate, value in zip(ranked, factors, strict=True)
    )


def by_recency(
    ranked: Sequence[Ranked], weight: float, oldest: datetime, newest: datetime
) -> list[Ranked]:
    """Scores times `1 - weight × age`, the age being 0 for the newest and 1 for the oldest document
    of what was searched. So with weight 1 the oldest counts nothing."""
    span = (newest - oldest).total_seconds()

    def age(candidate: Ranked) -> float:
        if span <= 0:
            return 0.0
        return min(1.0, max(0.0, (newest - candidate.facts.time).total_seconds() / span))

    return _sorted(
        replace(
            candidate,
            score=candidate.score * (1 - weight * age(candidate)),
            recency=1 - age(candidate),
        )
        for candidate in ranked
    )


def best_per_document(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The best passage of each document."""
    best: dict[UUID, Ranked] = {}
    for candidate in ranked:
        best.setdefault(candidate.facts.document_id, candidate)
    return list(best.values())


def without_duplicates(ranked: Sequence[Ranked], most: int) -> list[Ranked]:
    """The first `most` passages, each with the near-duplicates that stood behind it taken in."""
    kept: list[Ranked] = []
    for candidate in ranked:
        twin = next((n for n, other in enumerate(kept) if _say_the_same(other, candidate)), None)
        if twin is not None:
            taken = (*kept[twin].duplicates, candidate.fused.chunk_id)
            kept[twin] = replace(kept[twin], duplicates=taken)
        elif len(kept) < most:
            kept.append(candidate)
    return kept


def _say_the_same(one: Ranked, other: Ranked) -> bool:
    return is_near_duplicate(one.facts.fingerprint, other.facts.fingerprint)


def _sorted(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda one: (-one.score, -one.fused.reciprocal, one.fused.chunk_id))
