"""What is looked for, and by which legs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from knowledge.lexical.analyzer import query_words
from knowledge.lexical.weights import word_weights
from knowledge.models import KnowledgeBase
from knowledge.services.statistics import corpus_statistics, document_frequencies
from search.retrieval.candidates import Candidates, choose_candidates
from search.retrieval.legs import (
    Found,
    Scored,
    Vector,
    lexical_leg,
    merged,
    read_through,
    vector_leg,
)
from search.retrieval.searchable import Searchable


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query as the searched bases know them.

    `terms` are all of them, for highlighting; `weights` their BM25 weights by dimension.
    """

    terms: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    frequencies: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0

    @property
    def candidates(self) -> Candidates:
        """What the word index is asked for."""
        return choose_candidates(tuple(self.frequencies), self.frequencies, self.chunks)


def read_words(query: str, base_ids: Sequence[UUID]) -> Words:
    """Analyse a query for some bases, in their tenant's scope."""
    statistics = corpus_statistics(base_ids)
    words = query_words(query, statistics.languages)
    terms = tuple(dict.fromkeys(term for word in words for term in word.variants))
    frequencies = document_frequencies(base_ids, terms)
    weights = word_weights(words, frequencies, statistics.chunks)
    return Words(terms, statistics.languages, weights, frequencies, statistics.chunks)


@dataclass(frozen=True, slots=True)
class Part:
    """Bases that are searched in one go: their vectors are of one model and lie in one field.

    `indexed` names the columns for which the base (it is one then) has an index of its own.
    """

    bases: tuple[KnowledgeBase, ...]
    model: str
    vector_field: str
    indexed: frozenset[str] = frozenset()

    @property
    def base_ids(self) -> tuple[UUID, ...]:
        """Ids of the bases."""
        return tuple(base.id for base in self.bases)


def divide(bases: Sequence[KnowledgeBase], *, exactly: bool) -> list[Part]:
    """Large bases by themselves, the small ones together by model. With `exactly`, as for the few
    documents that a filter leaves, no index of a base is used."""
    small: dict[tuple[str, str], list[KnowledgeBase]] = defaultdict(list)
    parts = []
    for base in sorted(bases, key=lambda base: (base.embedding_model, base.id)):
        space = (base.embedding_model, base.embedding_field)
        if base.own_indexes and not exactly:
            parts.append(Part((base,), *space, frozenset(base.own_indexes)))
        else:
            small[space].append(base)
    parts += [Part(tuple(group), *space) for space, group in small.items()]
    return sorted(parts, key=lambda part: (part.model, part.base_ids[0]))


def search_part(
    searchable: Searchable, part: Part, words: Words, values: Sequence[float] | None, depth: int
) -> Found:
    """The legs of one part."""
    within = searchable.within(part.base_ids)
    vector = Vector(values, part.vector_field) if values is not None else None
    by_index = bool(words.weights) and "lexemes" in part.indexed
    near_by_index = vector is not None and part.vector_field in part.indexed
    rest = read_through(
        within, {} if by_index else words.weights, None if near_by_index else vector, depth
    )
    return Found(
        lexical_leg(within, words.candidates, words.weights, depth) if by_index else rest.lexical,
        vector_leg(within, vector, depth) if vector and near_by_index else rest.vector,
    )


def legs_of(parts: Sequence[tuple[Part, Found]], depth: int) -> dict[str, list[Scored]]:
    """The results of all parts by leg. Scores of different models do not compare: each is a leg."""
    legs: dict[str, list[Scored]] = {}
    lexical = [found.lexical for _, found in parts if found.lexical]
    if lexical:
        legs["lexical"] = merged(lexical, depth)
    by_model: dict[str, list[list[Scored]]] = defaultdict(list)
    for part, found in parts:
        if found.vector:
            by_model[part.model].append(found.vector)
    for number, (model, lists) in enumerate(sorted(by_model.items())):
        legs["vector" if number == 0 else f"vector {model}"] = merged(lists, depth)
    return legs
