"""One spelling per word: width, case, script variant, stem and accents are levelled here.

Every function works on a single word or character; offsets into the text are the caller's business.
"""

from __future__ import annotations

import threading
import unicodedata
from functools import lru_cache

import regex
import Stemmer
import zhconv_rs

MAX_TERM_CHARS = 200  # at most 800 bytes of UTF-8, far below PostgreSQL's 2,046 for a lexeme
ENGLISH = "en"

# Languages with a Snowball stemmer, by ISO 639-1. Nepali, Serbian and the like are left out where the
# stemmer expects a transliteration or does more harm than good.
_ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
# Languages of another script: the Latin words in their texts are mostly English.
_FOREIGN_LATIN = frozenset(
    "ar bg el fa he hi hy ja ka km ko lo mk my ne ru ta th uk zh".split()  # noqa: SIM905 (a word list)
)
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ı": "i", "ð": "d", "þ": "th", "ё": "е"}
)
_TURKISH_CASE = str.maketrans({"I": "ı", "İ": "i"})
_PUNCTUATION = str.maketrans(
    {"’": "'", "‐": "-", "‑": "-", "\u200c": None, "\u200d": None, "\u00ad": None}
)
# Accents of Latin and Greek letters, vowel points of Arabic and Hebrew, the Arabic tatweel.
_ACCENTS = regex.compile(
    r"(?<=[\p{Latin}\p{Greek}]\p{M}*)\p{M}|[\u064b-\u0652\u0670\u0640\u0591-\u05c7]"
)
_ELIDED = regex.compile(
    r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|all|coll|dall|dell|nell|sull|quell|quest)'"
    r"(?=[aeiouyhœæàâäéèêëîïíìôöóòûùüú])"
)


def _simplified_table() -> dict[int, str]:
    """Traditional to simplified, one character for one, so that lengths stay."""
    blocks = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00))
    characters = [chr(code) for first, last in blocks for code in range(first, last)]
    converted = zhconv_rs.zhconv("\n".join(characters), "zh-Hans").split("\n")
    pairs = zip(characters, converted, strict=True)
    return {ord(old): new for old, new in pairs if old != new and len(new) == 1}


SIMPLIFIED = _simplified_table()


class _Stemmers(threading.local):
    """Snowball stemmers keep state while they work, so each thread has its own."""

    def __init__(self) -> None:
        self._by_algorithm: dict[str, Stemmer.Stemmer] = {}

    def stem(self, word: str, algorithm: str) -> str:
        stemmer = self._by_algorithm.get(algorithm)
        if stemmer is None:
            stemmer = self._by_algorithm[algorithm] = Stemmer.Stemmer(algorithm, 0)
        return str(stemmer.stemWord(word))


_stemmers = _Stemmers()


def level(word: str, language: str) -> str:
    """The word in one width, case and script variant, its apostrophes in one form; not yet stemmed."""
    word = unicodedata.normalize("NFKC", word[: 2 * MAX_TERM_CHARS]).translate(_PUNCTUATION)
    if language == "tr":
        word = word.translate(_TURKISH_CASE)
    return unicodedata.normalize("NFKC", word.casefold()).translate(SIMPLIFIED)


def fold(word: str) -> str:
    """The word without accents, cut to the longest term there is."""
    if not word.isascii():
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
        word = unicodedata.normalize("NFC", bare).translate(_UNDECOMPOSED)
    return word[:MAX_TERM_CHARS]


def elided_length(word: str) -> int:
    """How many characters of article or pronoun are tied to the front: 2 in `l'eau`."""
    found = (
        _ELIDED.match(word.casefold().replace("’", "'")) if ("'" in word or "’" in word) else None
    )
    return found.end() if found else 0


def stem(word: str, language: str) -> str:
    """The stem of a levelled word under the rules of a language; the word itself if there are none."""
    if word.isascii() and language in _FOREIGN_LATIN:
        language = ENGLISH
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None or word[:1].isdigit():
        return word
    return _stemmers.stem(word, algorithm) or word


@lru_cache(maxsize=200_000)
def word_term(word: str, language: str) -> str:
    """The term of one plain word: levelled, without possessive and apostrophes, stemmed, folded."""
    word = level(word, language)
    if "'" in word:
        word = word.removesuffix("'s").replace("'", "")
    return fold(stem(word, language))
