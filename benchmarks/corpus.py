"""Chunks by the hundred thousand for measurements of speed: real sentences in new arrangements.

Passages of the evaluation sets (of the sample documents, where those are absent) are cut into sentences;
a generated chunk takes most of its sentences from one passage and the rest from another, and its vector
lies between the vectors of the two, with noise. So terms keep the frequencies of real text, and vectors
their clusters. What the product's analyser makes of a sentence is computed once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import regex
from pgvector import SparseVector

from accounts.tenancy import new_id
from knowledge.lexical.analyzer import Token, analyze
from knowledge.lexical.weights import DIMENSIONS, document_weights, tsvector_literal
from providers.base import Embedder, Vectors

_SENTENCE = regex.compile(r"[^.!?。！？\n]+[.!?。！？]*\s*")
_SENTENCES = 6  # in a chunk
_OWN_SHARE = 0.7  # of them from the first passage
_NOISE = 0.6  # length of the random part beside a unit vector


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its terms; `width` counts their positions."""

    text: str
    tokens: tuple[Token, ...]
    width: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A real passage: its sentences and its vector."""

    sentences: tuple[Sentence, ...]
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Row:
    """A generated chunk, its columns ready to be copied."""

    content: str
    lexemes: str
    weights: str
    length: int
    vector: Vectors


def read_passages(texts: Sequence[str], language: str, embedder: Embedder) -> list[Passage]:
    """Sentences and vectors of real passages; those of a single sentence are left out."""
    passages = []
    for text in texts:
        sentences = tuple(_sentence(part, language) for part in _SENTENCE.findall(text[:1500]))
        sentences = tuple(sentence for sentence in sentences if sentence.tokens)
        if len(sentences) > 1:
            passages.append((text, sentences))
    vectors = np.concatenate(
        [
            embedder.embed_passages([text for text, _ in passages[first : first + 256]])
            for first in range(0, len(passages), 256)
        ]
    )
    return [Passage(s, v) for (_, s), v in zip(passages, vectors, strict=True)]


def _sentence(text: str, language: str) -> Sentence:
    tokens = tuple(analyze(text, language))
    return Sentence(text, tokens, max((token.position for token in tokens), default=-1) + 1)


def generate(passages: Sequence[Passage], count: int, seed: int) -> Iterator[Row]:
    """`count` chunks; the same seed gives the same ones."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    noise = np.random.default_rng(seed)
    average = _average_length(passages)
    for _ in range(count):
        first, second = chance.choice(passages), chance.choice(passages)
        chosen = [
            chance.choice((first if chance.random() < _OWN_SHARE else second).sentences)
            for _ in range(_SENTENCES)
        ]
        tokens = _joined(chosen)
        mixed = _OWN_SHARE * first.vector + (1 - _OWN_SHARE) * second.vector
        mixed = mixed / np.linalg.norm(mixed)
        scatter = noise.standard_normal(len(mixed), np.float32)
        mixed += _NOISE * scatter / np.linalg.norm(scatter)
        yield Row(
            content="".join(sentence.text for sentence in chosen),
            lexemes=tsvector_literal(tokens),
            weights=SparseVector(document_weights(tokens, average), DIMENSIONS).to_text(),
            length=len(tokens),
            vector=mixed / np.linalg.norm(mixed),
        )


def _average_length(passages: Sequence[Passage]) -> float:
    lengths = [len(s.tokens) for passage in passages for s in passage.sentences]
    return _SENTENCES * sum(lengths) / len(lengths)


def _joined(sentences: Sequence[Sentence]) -> list[Token]:
    tokens: list[Token] = []
    shift = 0
    for sentence in sentences:
        tokens += [Token(t.term, t.position + shift, t.start, t.end) for t in sentence.tokens]
        shift += sentence.width
    return tokens


def count_terms(rows: Sequence[Row]) -> Counter[str]:
    """In how many of the rows each term occurs."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({part.rsplit(":", 1)[0] for part in row.lexemes.split(" ")})
    return counts


def new_ids(count: int) -> list[str]:
    """Ids as the product gives them."""
    return [str(new_id()) for _ in range(count)]
