"""The reranker that needs nothing but this machine: late interaction over the embedder's own model.

A vector holds a passage as a whole; here each word of the question looks for its likeness among the
words of the passage, all read in their context (MaxSim, Khattab and Zaharia, SIGIR 2020, "ColBERT").
How the details were chosen is measured in docs/search.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from time import perf_counter

import numpy as np

from providers.backends.e5 import MODEL
from providers.backends.e5.correction import LanguageCorrection
from providers.backends.e5.embedder import LocalE5Embedder
from providers.backends.e5.states import PackedStates, RecentStates
from providers.backends.e5.tokenizer import (
    CONTENT_TOKENS,
    PASSAGE_PREFIX,
    PREFIX_TOKENS,
    QUERY_PREFIX,
)
from providers.base import Reranker, Vectors

# About 900 passages of 200 words. Reading one takes some 20 to 50 ms, finding it here a fifth of one.
_RECENT_BYTES = 64 * 1024 * 1024
_LEAST_WEIGHT = 1e-6  # when no word tells the texts apart, as with a single text, all count alike


class LocalE5Reranker(Reranker):
    """Scores a text by the mean, over the question's words, of the cosine of its most similar word.

    A word counts by how far it tells the texts apart, see `_means`. Prefix and punctuation do not take
    part, and the states are corrected as the vectors are, so that a question meets passages in other
    languages. The model is the embedder's, loaded at the first use; safe to share between threads.
    The scores are the same whether the states of a text were kept or not.
    """

    model = f"{MODEL}/maxsim"

    def __init__(self, embedder: LocalE5Embedder, recent_bytes: int = _RECENT_BYTES) -> None:
        self._network = embedder.network
        self._correction = LanguageCorrection.load()
        self._recent = RecentStates(recent_bytes)

    def rerank(
        self, query: str, texts: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        """A passage is begun if it can be done by `deadline`, judged by the slowest one so far."""
        if not texts or _passed(deadline):
            return [None] * len(texts)
        question = self._correction.queries(self._word_states(QUERY_PREFIX + query))
        matches = [states.best_matches(question) for states in self._reached(texts, deadline)]
        scores: list[float | None] = [*_means(np.array(matches))] if matches else []
        return scores + [None] * (len(texts) - len(matches))

    def _reached(self, texts: Sequence[str], deadline: float | None) -> Iterator[PackedStates]:
        """The states of the texts, kept or computed, as far as time allows."""
        slowest_s = 0.0
        for text in texts:
            key = blake2b(text.encode(errors="replace"), digest_size=16).digest()
            states = self._recent.get(key)
            if _passed(deadline, 0.0 if states else slowest_s):
                return
            if states is None:
                started = perf_counter()
                states = self._read(text)
                self._recent.put(key, states)
                slowest_s = max(slowest_s, perf_counter() - started)
            yield states

    def _read(self, text: str) -> PackedStates:
        return PackedStates.pack(
            self._correction.passages(self._word_states(PASSAGE_PREFIX + text))
        )

    def _word_states(self, prefixed: str) -> Vectors:
        """The states of the words; of all tokens when there are none."""
        tokenizer = self._network.tokenizer
        ids = tokenizer.encode(prefixed)[:CONTENT_TOKENS]
        states = self._network.states(ids)
        words = tokenizer.words_among(ids)
        words[:PREFIX_TOKENS] = False
        return states[words] if words.any() else states


def _means(matches: Vectors) -> list[float]:
    """Weighted means of the rows, `(texts, words of the question)`.

    A word weighs what its best likeness among the texts is above the mean one. Words that all texts
    hold alike, or none does ("how", "please", a topic they share), decide nothing; they would drown the
    ones that do, above all in long questions.
    """
    weights = matches.max(axis=0) - matches.mean(axis=0) + np.float32(_LEAST_WEIGHT)
    means: list[float] = (matches @ weights / weights.sum()).tolist()
    return means


def _passed(deadline: float | None, needed_s: float = 0.0) -> bool:
    return deadline is not None and perf_counter() + needed_s >= deadline
