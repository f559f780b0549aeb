"""The reference for words: BM25 by bm25s over title and text, one entry a document.

What is a word follows the language as its literature does it: English and others by Snowball stems
(English without Lucene's stop words), Chinese by jieba in search mode with character pairs beside it
where that measures better, Japanese by character pairs, Thai by triples, code by its camelCase parts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import bm25s
import jieba
import regex
import Stemmer
from bm25s.stopwords import STOPWORDS_EN

from benchmarks.evaluation.metrics import DEPTH
from benchmarks.evaluation.sets import CODE, JudgedSet

Tokenizer = Callable[[str], list[str]]

_WORD = regex.compile(r"\w+")
_CODE_PART = regex.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HAN = regex.compile(r"\p{Han}+")
_EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー]+")
_THAI = regex.compile(r"[\p{Thai}\p{M}]+")
_SNOWBALL = {"ar": "arabic", "de": "german", "es": "spanish", "hi": "hindi"}
_WORDS_ONLY = {"rgb-zh"}  # sets on which Chinese words do better without pairs
# Sets on which these parameters do better than (1.2, 0.75).
_FLAT = (0.9, 0.4)
_FLATTER = {
    *("pubmedqa-l", "rgb-en-fact", "domainrag-zh", "jsquad-valid"),
    *("xquad-ar", "xquad-de", "xquad-es"),
}


def bm25_rankings(judged: JudgedSet) -> dict[str, list[str]]:
    """Question → documents, best first."""
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    jieba.setLogLevel(logging.WARNING)
    k1, b = _FLAT if judged.name in _FLATTER else (1.2, 0.75)
    index = bm25s.BM25(k1=k1, b=b, method="lucene")
    index.index(
        [
            _tokenizer(judged, document.id)(f"{document.title} {document.text}")
            for document in judged.documents
        ],
        show_progress=False,
    )
    ids = [document.id for document in judged.documents]
    return {
        key: _retrieve(index, ids, _tokenizer(judged, key)(text))
        for key, text in judged.questions.items()
    }


def _retrieve(index: bm25s.BM25, ids: list[str], terms: list[str]) -> list[str]:
    places, scores = index.retrieve([terms], k=min(DEPTH, len(ids)), show_progress=False)
    ranked = zip(places[0].tolist(), scores[0].tolist(), strict=True)
    return [ids[place] for place, score in ranked if score > 0]


def _tokenizer(judged: JudgedSet, item_id: str) -> Tokenizer:
    language = judged.language_of(item_id)
    if judged.name in _WORDS_ONLY:
        return _chinese_words
    return _TOKENIZERS.get(language, _plain)


def _english(text: str) -> list[str]:
    words = (word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS)
    return list(_ENGLISH.stemWords(list(words)))


def _plain(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _code(text: str) -> list[str]:
    parts = [word for word in _CODE_PART.findall(text) if len(word) > 1]
    return _english(" ".join(parts))


def _chinese_words(text: str) -> list[str]:
    return [word for word in jieba.cut_for_search(text.lower()) if any(map(str.isalnum, word))]


def _chinese(text: str) -> list[str]:
    # Pairs double the weight of Chinese words, so words of other scripts count twice as well.
    return [*_chinese_words(text), *_grams_and_words(text, _HAN, 2)]


def _english_or_chinese(text: str) -> list[str]:
    return _chinese_words(text) if _HAN.search(text) else _english(text)


def _stemmed(algorithm: str) -> Tokenizer:
    stemmer = Stemmer.Stemmer(algorithm)
    return lambda text: stemmer.stemWords(_plain(text))


def _japanese(text: str) -> list[str]:
    return list(_grams_and_words(text, _EAST_ASIAN, 2))


def _thai(text: str) -> list[str]:
    return list(_grams_and_words(text, _THAI, 3))


def _grams_and_words(text: str, script: regex.Pattern[str], size: int) -> Iterator[str]:
    """Sequences of `size` characters of a script, and the words in other scripts."""
    text = text.lower()
    for run in script.findall(text):
        yield from (run[first : first + size] for first in range(max(1, len(run) - size + 1)))
    yield from _WORD.findall(script.sub(" ", text))


_STOP_WORDS = frozenset(STOPWORDS_EN)
_ENGLISH = Stemmer.Stemmer("english")
_TOKENIZERS: dict[str, Tokenizer] = {
    "en": _english,
    "zh": _chinese,
    "en+zh": _english_or_chinese,
    "ja": _japanese,
    "th": _thai,
    CODE: _code,
    **{language: _stemmed(algorithm) for language, algorithm in _SNOWBALL.items()},
}
