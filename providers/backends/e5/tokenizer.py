"""The model's own tokenizer (SentencePiece unigram, 250,000 pieces), as the model counts."""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import regex
from numpy.typing import NDArray

from providers.backends.e5.build import NORMALISATION_FILE, TOKENIZER_FILE, ModelCache
from providers.base import Tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

# E5 was trained with these: https://huggingface.co/intfloat/multilingual-e5-small, "FAQ".
PASSAGE_PREFIX = "passage: "
QUERY_PREFIX = "query: "
BEGIN, END = 0, 2  # <s> and </s>
# 512 positions, without <s> and </s>.
CONTENT_TOKENS = 510
# "▁passage" or "▁query", and ":"; the blank behind belongs to the first piece of the text.
PREFIX_TOKENS = 2

_SPACES = re.compile(" {2,}")
_WORD = regex.compile(r"[^\p{P}\p{Z}▁]")  # SentencePiece writes a blank as ▁


@dataclass(frozen=True, slots=True)
class _Loaded:
    processor: SentencePieceProcessor
    normalisation: dict[int, str]


class E5Tokenizer(Tokenizer):
    """Counts and encodes. Loads (about 64 MB) at the first use; safe to share between threads."""

    max_tokens = CONTENT_TOKENS - PREFIX_TOKENS

    def __init__(self, cache: ModelCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a passage; at most `max_tokens` of them reach the model."""
        return [len(self.encode(PASSAGE_PREFIX + text)) - PREFIX_TOKENS for text in texts]

    def encode(self, text: str) -> list[int]:
        """The ids of all pieces, without <s> and </s>, however many they are."""
        loaded = self._load()
        # Half a surrogate pair (a text cut carelessly) has no UTF-8.
        text = text.encode(errors="replace").decode()
        text = unicodedata.normalize("NFKC", text).translate(loaded.normalisation)
        ids: list[int] = loaded.processor.encode(_SPACES.sub(" ", text))
        return ids

    def words_among(self, ids: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the pieces hold more than punctuation and blanks."""
        processor = self._load().processor
        pieces = (processor.id_to_piece(index) for index in ids)
        return np.fromiter((bool(_WORD.search(piece)) for piece in pieces), np.bool_, len(ids))

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._cache)
            return self._loaded


def _load(cache: ModelCache) -> _Loaded:
    from sentencepiece import SentencePieceProcessor  # noqa: PLC0415 - loads a library

    processor = SentencePieceProcessor(model_proto=cache.read(TOKENIZER_FILE))
    table: dict[str, str] = json.loads(cache.read(NORMALISATION_FILE))
    return _Loaded(processor, {int(code_point): to for code_point, to in table.items()})
