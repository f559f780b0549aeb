"""Chunks by the hundred thousand for measurements of speed: real sentences in new arrangements.

Passages of the evaluation sets (of the sample documents, where those are absent) are cut into sentences;
a generated chunk takes most of its sentences from one passage and the rest from another, and its vector
lies between the vectors of the two, with noise. So terms keep the frequencies of real text, and vectors
their clusters. What the product's analyser makes of a sentence is computed once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import regex
from pgvector import HalfVector, SparseVector

from knowledge.lexical.analyzer import Token, analyze
from knowledge.lexical.weights import (
    DIMENSIONS,
    MAX_LEXEME_BYTES,
    MAX_POSITION,
    MAX_POSITIONS,
    document_weights,
    length_of,
)
from providers.base import Embedder, Vectors

_SENTENCE = regex.compile(r"[^.!?。！？\n]+[.!?。！？]*\s*")
_PASSAGE_CHARS = 1500
SENTENCES = 6  # in a chunk
_OWN_SHARE = 0.7  # of them from the first passage
_NOISE = 0.3  # length of the random part beside a unit vector
_AT_ONCE = 1000  # chunks whose chances and vectors are drawn together
_EMBEDDED_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its terms; `places` are their bytes and positions, `width` counts these."""

    text: str
    tokens: tuple[Token, ...]
    places: tuple[tuple[bytes, int], ...]
    width: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A real passage: its sentences and its vector."""

    sentences: tuple[Sentence, ...]
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Row:
    """A generated chunk; `lexemes`, `weights` and `vector` as PostgreSQL receives them in binary."""

    content: str
    length: int
    lexemes: bytes
    weights: bytes
    vector: bytes


def read_passages(texts: Sequence[str], language: str, embedder: Embedder) -> list[Passage]:
    """Sentences and vectors of real passages; those of a single sentence are left out."""
    passages = []
    for text in texts:
        sentences = [
            _sentence(part.strip(), language) for part in _SENTENCE.findall(text[:_PASSAGE_CHARS])
        ]
        filled = tuple(sentence for sentence in sentences if sentence.tokens)
        if len(filled) > 1:
            passages.append((text, filled))
    if not passages:
        raise ValueError("There is no text of two sentences to make chunks of.")
    vectors = np.concatenate(
        [
            embedder.embed_passages([text for text, _ in passages[first : first + _EMBEDDED_AT_ONCE]])
            for first in range(0, len(passages), _EMBEDDED_AT_ONCE)
        ]
    )  # fmt: skip
    return [Passage(s, v) for (_, s), v in zip(passages, vectors, strict=True)]


def _sentence(text: str, language: str) -> Sentence:
    tokens = tuple(analyze(text, language))
    places = tuple(
        (token.term.encode()[:MAX_LEXEME_BYTES] + b"\0", token.position) for token in tokens
    )
    return Sentence(text, tokens, places, max((place for _, place in places), default=-1) + 1)


def average_length(passages: Sequence[Passage]) -> float:
    """The expected length of a chunk in terms, as BM25 needs it before any is made."""
    means = [
        sum(length_of(sentence.tokens) for sentence in passage.sentences) / len(passage.sentences)
        for passage in passages
    ]
    return SENTENCES * sum(means) / len(means)


def generate(passages: Sequence[Passage], count: int, seed: int) -> Iterator[Row]:
    """`count` chunks; the same passages and seed give the same ones, whatever the count."""
    chance = np.random.default_rng(seed)
    known = np.stack([passage.vector for passage in passages]).astype(np.float32)
    average = average_length(passages)
    for begin in range(0, count, _AT_ONCE):
        pairs = chance.integers(len(passages), size=(_AT_ONCE, 2))
        draws = chance.random((_AT_ONCE, SENTENCES, 2))
        vectors = _between(known[pairs[:, 0]], known[pairs[:, 1]], chance)
        for number in range(min(_AT_ONCE, count - begin)):
            first, second = (passages[place] for place in pairs[number])
            chosen = [
                _pick(first if own < _OWN_SHARE else second, place) for own, place in draws[number]
            ]
            yield _row(chosen, average, vectors[number])


def _pick(passage: Passage, place: float) -> Sentence:
    return passage.sentences[int(place * len(passage.sentences))]


def _between(first: Vectors, second: Vectors, chance: np.random.Generator) -> Vectors:
    mixed = _unit(_OWN_SHARE * first + (1 - _OWN_SHARE) * second)
    scatter = _unit(chance.standard_normal(mixed.shape, np.float32))
    return _unit(mixed + _NOISE * scatter)


def _unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def _row(sentences: Sequence[Sentence], average: float, vector: Vectors) -> Row:
    tokens = [token for sentence in sentences for token in sentence.tokens]
    return Row(
        content=" ".join(sentence.text for sentence in sentences),
        length=length_of(tokens),
        lexemes=_tsvector(sentences),
        weights=SparseVector(document_weights(tokens, average), DIMENSIONS).to_binary(),
        vector=HalfVector(vector).to_binary(),
    )


def _tsvector(sentences: Sequence[Sentence]) -> bytes:
    """The binary form of a tsvector: the number of lexemes, then each one, ended by a zero byte, the
    number of its places and the places (PostgreSQL's `tsvectorrecv`)."""
    places: dict[bytes, list[int]] = {}
    shift = 1
    for sentence in sentences:
        for lexeme, position in sentence.places:
            if lexeme in places:
                places[lexeme].append(position + shift)
            else:
                places[lexeme] = [position + shift]
        shift += sentence.width
    parts = [struct.pack(">i", len(places))]
    for lexeme, held in places.items():
        parts += (lexeme, _ONCE[held[0]] if len(held) == 1 and held[0] < 4096 else _several(held))
    return b"".join(parts)


def _several(held: Sequence[int]) -> bytes:
    kept = sorted({min(place, MAX_POSITION) for place in held})[:MAX_POSITIONS]
    return struct.pack(f">{1 + len(kept)}H", len(kept), *kept)


_ONCE = [struct.pack(">2H", 1, place) for place in range(4096)]
