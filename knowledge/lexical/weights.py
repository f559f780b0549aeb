"""BM25 as sparse vectors: the inner product of a query's and a chunk's vector is the BM25 score.

The formula is Lucene's variant (Kamphuis et al., "Which BM25 do you mean?", ECIR 2020, §2): idf is
never negative, and term frequency saturates with the length of the text.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from heapq import nlargest

from knowledge.lexical.analyzer import QueryWord, Token

DIMENSIONS = 1_000_000_000  # the most a pgvector sparsevec may have
MAX_NONZERO = 16_000  # of a pgvector sparsevec
# Limits of PostgreSQL's tsvector: https://www.postgresql.org/docs/current/textsearch-limitations.html
MAX_LEXEME_BYTES = 2_046
MAX_POSITION = 16_383
MAX_POSITIONS = 255
MAX_VECTOR_BYTES = 900_000  # PostgreSQL refuses a megabyte; the rest is room for its own padding


@lru_cache(maxsize=500_000)
def term_dimension(term: str) -> int:
    """The dimension of a term: a hash, so that no dictionary has to be kept."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big") % DIMENSIONS


def length_of(tokens: Sequence[Token]) -> int:
    """The length of a text for BM25: its number of terms."""
    return len(tokens)


def document_weights(
    tokens: Sequence[Token], average_length: float, k1: float = 1.2, b: float = 0.75
) -> dict[int, float]:
    """The chunk's side of BM25: saturated term frequencies by dimension."""
    ratio = length_of(tokens) / average_length if average_length > 0 else 1.0
    damping = k1 * (1 - b + b * ratio)
    frequencies = Counter(token.term for token in tokens)
    return _vector(
        (term, count * (k1 + 1) / (count + damping)) for term, count in frequencies.items()
    )


def word_weights(
    words: Iterable[QueryWord], document_frequencies: Mapping[str, int], total: int
) -> dict[int, float]:
    """The query's side of BM25: idf by dimension, of the words that occur among the `total` chunks searched.
    The stems of one word under several languages are as rare as the word is
    in all of them: otherwise the few passages in a stray language would win by their rare stems."""
    return _vector(
        (term, word_weight(word, document_frequencies, total))
        for word in words
        for term in word.variants
        if term in document_frequencies
    )


def word_weight(word: QueryWord, document_frequencies: Mapping[str, int], total: int) -> float:
    """What one word of a query weighs, whether it occurs anywhere or not."""
    return word.weight * _idf(_frequency(word, document_frequencies), total)


def _frequency(word: QueryWord, document_frequencies: Mapping[str, int]) -> int:
    return sum(document_frequencies.get(term, 0) for term in word.variants)


def _idf(frequency: int, total: int) -> float:
    frequency = min(frequency, total)  # counts may lag behind each other
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _vector(weights: Iterable[tuple[str, float]]) -> dict[int, float]:
    vector: defaultdict[int, float] = defaultdict(float)
    for term, weight in weights:
        vector[term_dimension(term)] += weight
    if len(vector) > MAX_NONZERO:
        return dict(nlargest(MAX_NONZERO, vector.items(), key=lambda entry: entry[1]))
    return dict(vector)


def sparsevec_literal(weights: Mapping[int, float]) -> str:
    """Text for a `::sparsevec` cast; dimensions count from 1 there."""
    entries = ",".join(
        f"{dimension + 1}:{weight:.6g}" for dimension, weight in sorted(weights.items()) if weight
    )
    return f"{{{entries}}}/{DIMENSIONS}"


def quoted_lexeme(term: str) -> str:
    """A term as the text input of `tsvector` and `tsquery` takes it."""
    cut = term.encode()[:MAX_LEXEME_BYTES].decode(errors="ignore")
    return "'" + cut.replace("\\", "\\\\").replace("'", "''") + "'"


def tsvector_literal(tokens: Sequence[Token]) -> str:
    """Text for a `::tsvector` cast. Of a text beyond PostgreSQL's limits the last terms are left out."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    for token in tokens:
        held = places[token.term]
        if len(held) < MAX_POSITIONS:
            held.add(min(token.position + 1, MAX_POSITION))
    parts: list[str] = []
    size = 0
    for term, held in places.items():
        size += len(term.encode()) + 2 * len(held) + 4
        if size > MAX_VECTOR_BYTES:
            break
        parts.append(f"{quoted_lexeme(term)}:{','.join(map(str, sorted(held)))}")
    return " ".join(parts)


def tsquery_literal(terms: Iterable[str]) -> str:
    """Text for a `::tsquery` cast: any of the terms. Empty when there are none."""
    return " | ".join(quoted_lexeme(term) for term in terms)
