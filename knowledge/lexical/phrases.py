"""Phrases of a text: whether a term stands in it, its words next to each other, however it is written.

A unit is a word or, in scripts without blanks, a character. Words compare by their stems under the same
language; width, case, accents and script variant are levelled as in `analyzer`. Function words count, for
`time off` is no phrase without its second word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from knowledge.lexical.analyzer import MAX_QUERY_CHARS
from knowledge.lexical.segmentation import (
    RUNS,
    east_asian_words,
    level_characters,
    word_pieces,
    word_places,
)
from knowledge.lexical.stop_words import is_stop_word

MAX_UNITS = 256  # of a text; what stands further back finds no phrase
_KEY_CHARS = 3  # endings differ, beginnings hardly do
# Beside the word itself: stemmers that change or take away its beginning.
_KEY_LANGUAGES = ("", "en", "ar", "ga", "id")


@dataclass(frozen=True, slots=True)
class Unit:
    """A word as written, or a levelled character, and where it stands; `run` numbers what is written
    without a break."""

    text: str
    start: int
    end: int
    run: int
    is_word: bool

    def form(self, language: str) -> str:
        """What it compares by."""
        return word_pieces(self.text, language)[0][0] if self.is_word else self.text


def phrase_units(text: str) -> list[Unit]:
    """The units of a text in order, at most `MAX_UNITS`."""
    units: list[Unit] = []
    for number, run in enumerate(RUNS.finditer(text[:MAX_QUERY_CHARS])):
        is_word = run.lastgroup == "word"
        units += _words(run.group(), run.start(), number) if is_word else ()
        units += () if is_word else _characters(run.group(), run.start(), number)
        if len(units) >= MAX_UNITS:
            break
    return units[:MAX_UNITS]


def phrase_identity(text: str) -> tuple[str, ...]:
    """Equal for terms that differ in layout, case, width, accents or script variant only."""
    return tuple(unit.form("") for unit in phrase_units(text))


def phrase_keys(text: str) -> set[str]:
    """Of which a text that holds this phrase has at least one among its `PhraseFinder.keys`."""
    units = phrase_units(text)[:2]
    if not units:
        return set()
    pair = _pair(units)
    return {pair} if pair else _unit_keys(units[0])


class PhraseFinder:
    """Looks for phrases in one text, under the stemming rules of some languages."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._units = phrase_units(text)
        self._forms: dict[str, list[str]] = {}
        self._dictionary_words: set[tuple[int, int]] | None = None

    @property
    def keys(self) -> list[str]:
        """What phrases in the text can be looked up by; whether they are there, only `find` knows."""
        found: set[str] = set()
        for place, unit in enumerate(self._units):
            found |= _unit_keys(unit)
            if pair := _pair(self._units[place : place + 2]):
                found.add(pair)
        return sorted(found)

    def find(self, phrase: str, languages: Iterable[str]) -> list[tuple[int, int]]:
        """The places of a phrase, each as its first character and the one behind its last."""
        wanted = phrase_units(phrase)
        codes = sorted(set(languages)) or [""]
        starts = {
            start
            for language in codes
            for start in self._matches([unit.form(language) for unit in wanted], language)
        }
        found = [self._units[start : start + len(wanted)] for start in sorted(starts)]
        return [
            (units[0].start, units[-1].end)
            for units in found
            if self._is_whole(units) and self._is_meant(units, phrase, codes)
        ]

    def _matches(self, wanted: Sequence[str], language: str) -> Iterator[int]:
        if language not in self._forms:
            self._forms[language] = [unit.form(language) for unit in self._units]
        forms = self._forms[language]
        for start in range(len(forms) - len(wanted) + 1 if wanted else 0):
            if forms[start : start + len(wanted)] == wanted:
                yield start

    def _is_meant(self, units: Sequence[Unit], phrase: str, languages: Sequence[str]) -> bool:
        """The word IT is not meant by an “it”: function words must be written as in the phrase."""
        if not all(unit.is_word and is_stop_word(unit.text, languages) for unit in units):
            return True
        return self.text[units[0].start : units[-1].end] == phrase.strip()

    def _is_whole(self, units: Sequence[Unit]) -> bool:
        """Characters are no phrase where they are the end of one word and the beginning of the next,
        as 年假 in 少年假装; a single one must be a word."""
        first, last = units[0], units[-1]
        if first.is_word or last.is_word:
            return True
        start, end = first.start, last.end
        if len(units) == 1:
            return self._stands_alone(first) or (start, end) in self._words()
        begins_before = any(left < start < right < end for left, right in self._words())
        return not (
            begins_before and any(start < left < end < right for left, right in self._words())
        )

    def _stands_alone(self, unit: Unit) -> bool:
        return sum(other.run == unit.run for other in self._units) == 1

    def _words(self) -> set[tuple[int, int]]:
        if self._dictionary_words is None:
            self._dictionary_words = east_asian_words(self.text[:MAX_QUERY_CHARS])
        return self._dictionary_words


def _words(run: str, begin: int, number: int) -> list[Unit]:
    return [
        Unit(run[start:end], begin + start, begin + end, number, is_word=True)
        for start, end in word_places(run)
        if end > start
    ]


def _characters(run: str, begin: int, number: int) -> list[Unit]:
    text, spans = level_characters(run)
    places = spans if spans is not None else [(place, place + 1) for place in range(len(text))]
    return [
        Unit(character, begin + start, begin + end, number, is_word=False)
        for character, (start, end) in zip(text, places, strict=True)
    ]


def _unit_keys(unit: Unit) -> set[str]:
    if not unit.is_word:
        return {unit.text}
    return {unit.form(language)[:_KEY_CHARS] for language in _KEY_LANGUAGES}


def _pair(units: Sequence[Unit]) -> str:
    """Two characters that stand together."""
    if len(units) < 2 or units[0].run != units[1].run or units[0].is_word:
        return ""
    return units[0].text + units[1].text
