"""The one analyser: documents, queries and highlighting all get their terms from here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import regex

from knowledge.lexical.segmentation import (
    RUNS,
    Piece,
    east_asian_pieces,
    east_asian_words,
    hangul_pieces,
    no_blanks_pieces,
    word_pieces,
)
from knowledge.lexical.stop_words import is_stop_word

_HAN = regex.compile(r"\p{Han}")
_HAN_PAIR = regex.compile(r"\p{Han}{2}")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_WITHOUT_BLANKS = regex.compile(r"[\p{Han}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
# Weights of query words, by measurement: docs/search.md.
_PART = 0.7
_LOOSE = 0.4
_FOREIGN = 1.5
MAX_QUERY_CHARS = 8_000
MAX_QUERY_WORDS = 64

_SEGMENTERS: dict[str, Callable[[str, str], Sequence[Piece]]] = {
    "word": word_pieces,
    "east_asian": east_asian_pieces,
    "hangul": hangul_pieces,
    "no_blanks": no_blanks_pieces,
}


_Place = tuple[int, int]  # first character of a term and the one behind its last


@dataclass(frozen=True, slots=True)
class Token:
    """A term and where it stands: `text[start:end]`, `position` counting words for phrases."""

    term: str
    position: int
    start: int
    end: int


def analyze(text: str, language: str) -> list[Token]:
    """The terms of a text. `language` is an ISO 639-1 code; without one nothing is stemmed."""
    tokens: list[Token] = []
    position = 0
    for run in RUNS.finditer(text):
        begin = run.start()
        last = 0
        for term, offset, start, end in _SEGMENTERS[run.lastgroup or "word"](run.group(), language):
            if term:  # a lone Arabic tatweel has none
                tokens.append(Token(term, position + offset, begin + start, begin + end))
            last = offset
        position += last + 1
    return tokens


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word at one place of a query: its stem in each of the languages, and what it counts beside
    other words of the query."""

    variants: tuple[str, ...]
    weight: float = 1.0


def query_terms(text: str, languages: Iterable[str]) -> list[str]:
    """The distinct terms to look for, any of which may match.

    Each word is stemmed under each of the languages, as the chunks of a base may differ in theirs.
    Stop words go, unless the query has nothing else.
    """
    words = query_words(text, languages)
    return list(dict.fromkeys(term for word in words for term in word.variants))


def query_words(text: str, languages: Iterable[str]) -> list[QueryWord]:
    """The words of a query in order, each as often as it occurs: a word that a long query repeats
    says what it is about."""
    text = text[:MAX_QUERY_CHARS]
    places = _content_places(text, sorted(set(languages)) or [""])
    weights = _place_weights(text, places)
    starts = sorted({start for start, _ in places})[:MAX_QUERY_WORDS]
    return [
        QueryWord(tuple(dict.fromkeys(places[place])), weights[place])
        for place in sorted(places)
        if place[0] <= starts[-1]
    ]


def _content_places(text: str, codes: Sequence[str]) -> dict[_Place, list[str]]:
    """Terms by place, without function words unless there is nothing else."""
    content: defaultdict[_Place, list[str]] = defaultdict(list)
    function: defaultdict[_Place, list[str]] = defaultdict(list)
    for language in codes:
        tokens = analyze(text, language)
        stops = {token for token in tokens if is_stop_word(text[token.start : token.end], codes)}
        bridges = _bridges(text, tokens, stops)
        for token in tokens:
            if token not in bridges:
                terms = function if token in stops else content
                terms[token.start, token.end].append(token.term)
    return content or function


def _place_weights(text: str, places: Collection[_Place]) -> dict[_Place, float]:
    """What each place counts. Where several terms share characters, only what is most telling counts
    in full: a code rather than its parts, Chinese words of one or two characters rather than longer ones
    (which come in parts as well) and chance pairs."""
    if not _HAN.search(text) or _KANA.search(text):
        return {place: _PART if _is_part(text, place, places) else 1.0 for place in places}
    words = east_asian_words(text)
    return {place: _weight_beside_chinese(text, place, words) for place in places}


def _is_part(text: str, place: _Place, places: Collection[_Place]) -> bool:
    start, end = place
    return not _WITHOUT_BLANKS.search(text, start, end) and any(
        first <= start and end <= last and (first, last) != place for first, last in places
    )


def _weight_beside_chinese(text: str, place: _Place, words: Collection[_Place]) -> float:
    start, end = place
    if not _HAN.search(text, start, end):
        return _FOREIGN  # a Chinese word of its length has several terms that count
    return 1.0 if place in words and end - start <= 2 else _LOOSE


def is_code(term: str) -> bool:
    """Whether a term is an identifier such as `ppr-9087`, `err_0x80` or `b2b`: letters or signs with digits."""
    return any(sign.isdigit() for sign in term) and not term.isdigit()


def _bridges(text: str, tokens: Sequence[Token], stops: Collection[Token]) -> set[Token]:
    """Chinese character pairs that join a function word to its neighbour: rare, but no words."""
    places = {place for token in stops for place in range(token.start, token.end)}
    pairs = (token for token in tokens if _HAN_PAIR.fullmatch(text, token.start, token.end))
    return {
        pair
        for pair in pairs
        if pair not in stops and (pair.start in places or pair.end - 1 in places)
    }


def highlight_spans(
    content: str, terms: Collection[str], languages: Iterable[str]
) -> list[tuple[int, int]]:
    """The places of the terms in a text, in order; places that touch are one."""
    codes = sorted(set(languages)) or [""]
    wanted = frozenset(terms)
    found = {
        (run.start() + start, run.start() + end)
        for run in RUNS.finditer(content)
        for language in codes
        for term, _, start, end in _SEGMENTERS[run.lastgroup or "word"](run.group(), language)
        if term in wanted
    }
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
