"""What is looked for, and by which legs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from knowledge.lexical.analyzer import query_words
from knowledge.lexical.phrases import PhraseFinder
from knowledge.lexical.weights import term_dimension, word_weights
from knowledge.models import KnowledgeBase
from knowledge.services.statistics import document_frequencies
from search.retrieval.candidates import BUDGET, Candidates, choose_candidates
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
from search.retrieval.synonyms import (
    Expansion,
    added_terms,
    added_weights,
    find_expansions,
    read_corpus,
)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query as the searched bases know them.

    `terms` are all of them, for highlighting; `weights` their BM25 weights by dimension; `frequencies` of
    those that occur, `added` among them being brought by synonyms only. `own` has the words of bases
    with synonyms of their own.
    """

    terms: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    frequencies: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    added: frozenset[str] = frozenset()
    synonyms: tuple[Expansion, ...] = ()
    own: Mapping[UUID, Words] = field(default_factory=dict)

    @property
    def candidates(self) -> Candidates:
        """What the word index is asked for. Synonyms take nothing from the words asked for: those that
        are everywhere, as `it` is, name no candidates."""
        asked = [term for term in self.frequencies if term not in self.added]
        added = [term for term in self.frequencies if term in self.added]
        candidates = choose_candidates(asked, self.frequencies, self.chunks)
        rare = [term for term in added if self.frequencies[term] <= BUDGET]
        if rare:
            candidates = candidates.or_else(choose_candidates(rare, self.frequencies, self.chunks))
        if len(rare) == len(added):
            return candidates
        return replace(candidates, complete=False, terms=(*candidates.terms, *added))

    def for_bases(self, base_ids: Sequence[UUID]) -> Words:
        """As some bases that are searched in one go have them (see `divide`)."""
        return self.own.get(base_ids[0], self) if len(base_ids) == 1 else self


def read_words(query: str, base_ids: Sequence[UUID]) -> Words:
    """Analyse a query for some bases, in their tenant's scope."""
    finder = PhraseFinder(query)
    statistics, sets = read_corpus(base_ids, finder)
    languages = statistics.languages
    words = query_words(query, languages)
    asked = list(dict.fromkeys(term for word in words for term in word.variants))
    expansions = find_expansions(finder, sets, languages) if sets else []
    terms = tuple(dict.fromkeys([*asked, *added_terms(expansions, languages)]))
    frequencies = document_frequencies(base_ids, terms)
    plain = Words(
        terms,
        languages,
        word_weights(words, frequencies, statistics.chunks),
        {term: count for term, count in frequencies.items() if term in asked},
        statistics.chunks,
        synonyms=tuple(expansions),
    )
    return _expanded(plain, base_ids, frequencies) if expansions else plain


def _expanded(plain: Words, base_ids: Sequence[UUID], frequencies: Mapping[str, int]) -> Words:
    """With the synonyms of all bases, and for those bases that have others with these too."""
    alone = len(base_ids) == 1
    shared = [one for one in plain.synonyms if one.base_id is None or alone]
    special = {one.base_id for one in plain.synonyms if one.base_id is not None and not alone}
    own = {
        base_id: _with_synonyms(
            plain, [one for one in plain.synonyms if one.base_id in {None, base_id}], frequencies
        )
        for base_id in special
    }
    return replace(_with_synonyms(plain, shared, frequencies), own=own)


def _with_synonyms(
    plain: Words, expansions: Sequence[Expansion], frequencies: Mapping[str, int]
) -> Words:
    added = [term for term in added_terms(expansions, plain.languages) if term in frequencies]
    found = added_weights(expansions, plain.languages, frequencies, plain.chunks)
    new = frozenset(term for term in added if term not in plain.frequencies)
    dimensions = {term_dimension(term) for term in new} - plain.weights.keys()
    return replace(
        plain,
        weights={**plain.weights, **{one: found[one] for one in dimensions if one in found}},
        frequencies={**plain.frequencies, **{term: frequencies[term] for term in new}},
        added=new,
    )


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


def divide(
    bases: Sequence[KnowledgeBase], *, exactly: bool, alone: Collection[UUID] = ()
) -> list[Part]:
    """Large bases by themselves, and those whose words differ (`alone`); the small ones together by
    model. With `exactly`, as for the few documents that a filter leaves, no index of a base is used."""
    small: dict[tuple[str, str], list[KnowledgeBase]] = defaultdict(list)
    parts = []
    for base in sorted(bases, key=lambda base: (base.embedding_model, base.id)):
        space = (base.embedding_model, base.embedding_field)
        if base.own_indexes and not exactly:
            parts.append(Part((base,), *space, frozenset(base.own_indexes)))
        elif base.id in alone:
            parts.append(Part((base,), *space))
        else:
            small[space].append(base)
    parts += [Part(tuple(group), *space) for space, group in small.items()]
    return sorted(parts, key=lambda part: (part.model, part.base_ids[0]))


def search_part(
    searchable: Searchable, part: Part, words: Words, values: Sequence[float] | None, depth: int
) -> Found:
    """The legs of one part."""
    words = words.for_bases(part.base_ids)
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
