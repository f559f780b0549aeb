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
    hangul_pieces,
    no_blanks_pieces,
    word_pieces,
)
from knowledge.lexical.stop_words import is_stop_word

_HAN_PAIR = regex.compile(r"\p{Han}{2}")
MAX_QUERY_CHARS = 8_000
MAX_QUERY_WORDS = 64

_SEGMENTERS: dict[str, Callable[[str, str], Sequence[Piece]]] = {
    "word": word_pieces,
    "east_asian": east_asian_pieces,
    "hangul": hangul_pieces,
    "no_blanks": no_blanks_pieces,
}


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


def query_terms(text: str, languages: Iterable[str]) -> list[str]:
    """The distinct terms to look for, any of which may match.

    Each word is stemmed under each of the languages, as the chunks of a base may differ in theirs.
    Stop words go, unless the query has nothing else.
    """
    return list(dict.fromkeys(query_occurrences(text, languages)))


def query_occurrences(text: str, languages: Iterable[str]) -> list[str]:
    """The terms of a query as often as their words occur: for weights, where a repeated word counts
    again. In a long query that says what it is about.
    """
    codes = sorted(set(languages)) or [""]
    text = text[:MAX_QUERY_CHARS]
    content: defaultdict[int, list[str]] = defaultdict(list)
    function: defaultdict[int, list[str]] = defaultdict(list)
    for language in codes:
        tokens = analyze(text, language)
        stops = {token for token in tokens if is_stop_word(text[token.start : token.end], codes)}
        bridges = _bridges(text, tokens, stops)
        for token in tokens:
            if token not in bridges:
                (function if token in stops else content)[token.start].append(token.term)
    chosen = content or function
    starts = sorted(chosen)[:MAX_QUERY_WORDS]
    return [term for start in starts for term in dict.fromkeys(chosen[start])]


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
    wanted = frozenset(terms)
    found = {
        (token.start, token.end)
        for language in sorted(set(languages)) or [""]
        for token in analyze(content, language)
        if token.term in wanted
    }
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
