"""Which language a text is written in: by its script where that decides, else by a small model.

Short texts are often undecided. A caller with many passages of one document does well to ask for the
document and to let a passage inherit the answer.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

import regex
from py3langid.langid import MODEL_FILE, LanguageIdentifier

SAMPLE_CHARS = 3_000
_ENOUGH_LETTERS = 12  # below that the model guesses
_ENOUGH_PROBABILITY = 0.4
_LETTERS_TO_DIFFER = 200
_PROBABILITY_TO_DIFFER = 0.9

_SCRIPTS = regex.compile(
    r"(?P<Han>\p{Han})|(?P<Kana>[\p{Hiragana}\p{Katakana}])|(?P<Hangul>\p{Hangul})|(?P<Latin>\p{Latin})"
    r"|(?P<Cyrillic>\p{Cyrillic})|(?P<Arabic>\p{Arabic})|(?P<Hebrew>\p{Hebrew})|(?P<Greek>\p{Greek})"
    r"|(?P<Devanagari>\p{Devanagari})|(?P<Thai>\p{Thai})|(?P<Lao>\p{Lao})|(?P<Khmer>\p{Khmer})"
    r"|(?P<Myanmar>\p{Myanmar})|(?P<Armenian>\p{Armenian})|(?P<Georgian>\p{Georgian})"
    r"|(?P<Tamil>\p{Tamil})|(?P<Telugu>\p{Telugu})|(?P<Kannada>\p{Kannada})"
    r"|(?P<Malayalam>\p{Malayalam})|(?P<Bengali>\p{Bengali})|(?P<Gujarati>\p{Gujarati})"
    r"|(?P<Gurmukhi>\p{Gurmukhi})|(?P<Sinhala>\p{Sinhala})|(?P<Amharic>\p{Ethiopic})"
)
# A Chinese text names products and units in Latin letters: one ideograph says as much as a few letters.
_LETTERS_OF_ONE = {"Han": 4, "Kana": 3, "Hangul": 3}
# One language a script, or the languages the model may choose from.
_LANGUAGES = {
    "Han": ["zh"],
    "Kana": ["ja"],
    "Hangul": ["ko"],
    "Hebrew": ["he"],
    "Greek": ["el"],
    "Thai": ["th"],
    "Lao": ["lo"],
    "Khmer": ["km"],
    "Myanmar": ["my"],
    "Armenian": ["hy"],
    "Georgian": ["ka"],
    "Tamil": ["ta"],
    "Telugu": ["te"],
    "Kannada": ["kn"],
    "Malayalam": ["ml"],
    "Bengali": ["bn"],
    "Gujarati": ["gu"],
    "Gurmukhi": ["pa"],
    "Sinhala": ["si"],
    "Amharic": ["am"],
    "Devanagari": ["hi", "mr", "ne"],
    "Arabic": ["ar", "fa", "ur"],
    "Cyrillic": ["ru", "uk", "bg", "sr", "mk", "be", "kk", "mn"],
    "Latin": [
        *("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "is", "pl", "cs", "sk"),
        *("hu", "ro", "tr", "ca", "eu", "ga", "id", "vi", "et", "lt", "lv", "hr", "sl", "sq"),
    ],
}


_SCRIPT_OF = {language: script for script, some in _LANGUAGES.items() for language in some}
_SHARED = {"Kana": "Han"}  # Japanese and Chinese have words in common


def may_share_words(text: str, language: str) -> bool:
    """Whether words of the text can stand in a passage of the language: both are written in one script, or
    it is not known."""
    letters = Counter(found.lastgroup or "" for found in _SCRIPTS.finditer(text[:SAMPLE_CHARS]))
    script = _SCRIPT_OF.get(language)
    if not letters or script is None:
        return True
    own = _main_script(letters)
    return _SHARED.get(own, own) == _SHARED.get(script, script)


def detect_language(text: str, around: str = "") -> str:
    """The ISO 639-1 code of the language, or "" when the text is too short or does not tell.

    `around` is the language of the document that the text is a passage of. A passage in the same script
    is taken for another language on strong evidence only: tables, references and code look like any.
    """
    sample = text[:SAMPLE_CHARS]
    letters = Counter(found.lastgroup or "" for found in _SCRIPTS.finditer(sample))
    if not letters:
        return ""
    script = _main_script(letters)
    languages = _LANGUAGES[script]
    if len(languages) == 1:
        return languages[0]
    if around in languages:
        enough, probability = _LETTERS_TO_DIFFER, _PROBABILITY_TO_DIFFER
    else:
        enough, probability = _ENOUGH_LETTERS, _ENOUGH_PROBABILITY
    found = _most_likely(sample, languages, probability) if letters[script] >= enough else ""
    return found or (around if around in languages else "")


def _main_script(letters: Counter[str]) -> str:
    ideographs, kana = letters["Han"], letters["Kana"]
    if kana * 10 > ideographs:  # Japanese writes both; a Chinese text quotes a name at most
        letters = letters + Counter(Kana=ideographs)
        del letters["Han"]
    return max(letters, key=lambda script: letters[script] * _LETTERS_OF_ONE.get(script, 1))


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    """Loaded at first use: it takes a second. It keeps no state between texts."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _most_likely(sample: str, languages: list[str], probability: float) -> str:
    ranked: dict[str, float] = dict(_identifier().rank(sample))
    chances = {language: ranked.get(language, 0.0) for language in languages}
    total = math.fsum(chances.values())
    best = max(chances, key=lambda language: chances[language])
    return best if total > 0 and chances[best] / total >= probability else ""
