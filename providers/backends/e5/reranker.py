"""The reranker that needs nothing but this machine: late interaction over the embedder's own model.

A vector holds a passage as a whole; here each word of the question looks for its likeness among the
words of the passage, all read in their context (MaxSim, Khattab and Zaharia, SIGIR 2020, "ColBERT").
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from time import perf_counter

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


class LocalE5Reranker(Reranker):
    """Scores a text by the mean, over the question's words, of the cosine of its most similar word.

    Prefix and punctuation do not take part, and the states are corrected as the vectors are, so that a
    question meets passages in other languages. The model is the embedder's, loaded at the first use;
    safe to share between threads. A text's score is the same whether its states were kept or not.
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
        scores: list[float | None] = [None] * len(texts)
        if not texts or _passed(deadline):
            return scores
        question = self._correction.queries(self._word_states(QUERY_PREFIX + query))
        slowest_s = 0.0
        for place, text in enumerate(texts):
            key = blake2b(text.encode(errors="replace"), digest_size=16).digest()
            states = self._recent.get(key)
            if _passed(deadline, 0.0 if states else slowest_s):
                break
            if states is None:
                started = perf_counter()
                states = self._read(text)
                self._recent.put(key, states)
                slowest_s = max(slowest_s, perf_counter() - started)
            scores[place] = float(states.best_matches(question).mean())
        return scores

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


def _passed(deadline: float | None, needed_s: float = 0.0) -> bool:
    return deadline is not None and perf_counter() + needed_s >= deadline
