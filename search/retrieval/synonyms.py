"""Synonyms of a query: which sets apply to it, and what the words that they add weigh.

All of it happens on the side of the query; nothing is indexed anew.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from accounts.tenancy import current_tenant_id
from knowledge.lexical.analyzer import QueryWord, query_words
from knowledge.lexical.phrases import PhraseFinder, phrase_units
from knowledge.lexical.stop_words import is_stop_word
from knowledge.lexical.weights import word_weight, word_weights
from knowledge.services.statistics import LENGTH_TOTALS, CorpusStatistics, statistics_of

# A synonym counts this much beside the word asked for. BM25 rises to 2.2 times with repetition: of two
# passages of average length, one that holds the asked word once stays before one that holds the
# synonym three times.
SHARE = 0.6
MAX_ADDED = 50  # terms that one query is given in all

# One statement, as a search that has no synonyms pays for it too. It reads the sets of a tenant, at most
# 1,000, and leaves those whose keys are not the query's.
_CORPUS = f"""
SELECT language, chunks, length, NULL::uuid, NULL::text[], NULL::boolean
FROM ({LENGTH_TOTALS}) totals (language, chunks, length)
UNION ALL
SELECT NULL, NULL, NULL, knowledge_base_id, terms, one_way FROM (
  SELECT knowledge_base_id, terms::text[], one_way FROM search_synonymset
  WHERE tenant_id = %s AND enabled AND (knowledge_base_id IS NULL OR knowledge_base_id = ANY(%s))
  AND keys && %s::varchar[] ORDER BY created_at, id) sets
"""


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Terms that mean the same in one base, or in all when `base_id` is None."""

    base_id: UUID | None
    terms: tuple[str, ...]
    one_way: bool = False

    @property
    def asked_terms(self) -> tuple[str, ...]:
        """Those that make a query look for the others."""
        return self.terms[:1] if self.one_way else self.terms


@dataclass(frozen=True, slots=True)
class Expansion:
    """Words of a query, as written there, and the terms that are looked for beside them."""

    asked: str
    added: tuple[str, ...]
    base_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    synonyms: Synonyms

    def lies_within(self, other: _Match) -> bool:
        longer = other.end - other.start > self.end - self.start
        same_bases = other.synonyms.base_id in {None, self.synonyms.base_id}
        return same_bases and longer and other.start <= self.start and self.end <= other.end


def read_corpus(
    base_ids: Sequence[UUID], finder: PhraseFinder
) -> tuple[CorpusStatistics, list[Synonyms]]:
    """The statistics of some bases, and the synonyms that may apply to a query there."""
    tenant_id, bases = current_tenant_id(), list(base_ids)
    with connection.cursor() as cursor:
        cursor.execute(_CORPUS, [tenant_id, bases, tenant_id, bases, finder.keys])
        rows = cursor.fetchall()
    statistics = statistics_of(row[:3] for row in rows if row[0] is not None)
    sets = [Synonyms(row[3], tuple(row[4]), row[5]) for row in rows if row[0] is None]
    return statistics, sets


def find_expansions(
    finder: PhraseFinder, sets: Iterable[Synonyms], languages: Collection[str]
) -> list[Expansion]:
    """What each term of the query gets, in the order of the query. Of terms that lie in one another the
    longest counts; what is in the query already is not added."""
    matches = [
        _Match(start, end, synonyms)
        for synonyms in sets
        for term in synonyms.asked_terms
        for start, end in finder.find(term, languages)
    ]
    matches = [one for one in matches if not any(one.lies_within(other) for other in matches)]
    expansions: dict[tuple[str, Synonyms], Expansion] = {}
    room = MAX_ADDED
    for match in sorted(matches, key=lambda match: match.start):
        asked = finder.text[match.start : match.end]
        synonyms = match.synonyms
        if (asked, synonyms) in expansions:
            continue
        others = [term for term in synonyms.terms if not finder.find(term, languages)]
        added = tuple(others[:room])
        room -= len(added)
        if added:
            expansions[asked, synonyms] = Expansion(asked, added, synonyms.base_id)
    return list(expansions.values())


def added_terms(expansions: Iterable[Expansion], languages: Collection[str]) -> list[str]:
    """The analysed terms to look for, each once."""
    return list(
        dict.fromkeys(
            variant
            for expansion in expansions
            for term in expansion.added
            for word in query_words(term, languages)
            for variant in word.variants
        )
    )


def added_weights(
    expansions: Iterable[Expansion],
    languages: Collection[str],
    frequencies: Mapping[str, int],
    total: int,
) -> dict[int, float]:
    """BM25 weights of the added words. The words of a synonym together weigh `SHARE` of what they would if
    they were asked for, and at most that of what was asked for in their stead; where two synonyms share a
    word it counts once."""
    weights: dict[int, float] = {}
    for expansion in expansions:
        most = _asked_weight(expansion.asked, languages, frequencies, total)
        for term in expansion.added:
            words = query_words(term, languages)
            own = _sum(words, frequencies, total)
            factor = SHARE * min(1.0, most / own) if own else 0.0
            for word in words:
                for dimension, weight in word_weights([word], frequencies, total).items():
                    weights[dimension] = max(weights.get(dimension, 0.0), factor * weight)
    return weights


def _asked_weight(
    asked: str, languages: Collection[str], frequencies: Mapping[str, int], total: int
) -> float:
    """Of function words (the department IT) a search takes no account: they set no limit."""
    if all(unit.is_word and is_stop_word(unit.text, languages) for unit in phrase_units(asked)):
        return math.inf
    return _sum(query_words(asked, languages), frequencies, total)


def _sum(words: Iterable[QueryWord], frequencies: Mapping[str, int], total: int) -> float:
    return sum(word_weight(word, frequencies, total) for word in words)
