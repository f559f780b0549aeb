"""Where terms begin and end: words and codes, and scripts that are written without blanks.

A segmenter takes one run of a script family and yields pieces relative to that run. Pieces may overlap:
a code comes whole and in parts, Chinese comes as words and as character pairs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex
import rjieba

from knowledge.lexical.normalization import SIMPLIFIED, elided_length, fold, level, word_term

_EAST_ASIAN = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uff70\uff9e\uff9f"
_NO_BLANKS = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{N}}]--[{_EAST_ASIAN}\p{{Hangul}}{_NO_BLANKS}]]"
_INNER = rf"[[\p{{L}}\p{{N}}\p{{M}}\u200c\u200d\u00ad]--[{_EAST_ASIAN}\p{{Hangul}}{_NO_BLANKS}]]"
_ATOM = rf"{_LETTER}{_INNER}*+(?:['’](?=\p{{L}}){_INNER}++)*+"
_JOINT = r"(?:_+|[-.@＿－．＠‐‑]|(?<=\p{Nd}),(?=\p{Nd}{3}))"

RUNS = regex.compile(
    rf"(?V1)(?P<word>{_ATOM}(?:{_JOINT}{_ATOM})*+(?:\+\+|\#)?)"
    rf"|(?P<east_asian>[{_EAST_ASIAN}]+)"
    rf"|(?P<hangul>\p{{Hangul}}+)"
    rf"|(?P<no_blanks>[{_NO_BLANKS}][{_NO_BLANKS}\p{{M}}]*)"
)
_ATOMS = regex.compile(rf"(?V1){_ATOM}")
_GROUPED_NUMBER = regex.compile(r"\p{Nd}{1,3}(?:,\p{Nd}{3})+(?:\.\p{Nd}+)?")
_HUMPS = regex.compile(
    r"\p{Lu}+(?!\p{Ll})[\p{M}\p{N}]*|\p{Lu}?\p{Ll}[\p{Ll}\p{M}\p{N}]*|[\p{L}\p{N}][\p{M}\p{N}]*"
)
_HAN = regex.compile(r"\p{Han}+")
_CLUSTER = regex.compile(r"\X")
_LONGEST_CACHED = 64


# A term within its run: (term, position, start, end). The position counts words or, where there are no
# blanks, characters. A plain tuple, as a large document makes millions.
Piece = tuple[str, int, int, int]


def word_pieces(run: str, language: str) -> tuple[Piece, ...]:
    """A word, or a code whole and in its parts."""
    if len(run) > _LONGEST_CACHED:
        return tuple(_word_pieces(run, language))
    return _cached_word_pieces(run, language)


@lru_cache(maxsize=200_000)
def _cached_word_pieces(run: str, language: str) -> tuple[Piece, ...]:
    return tuple(_word_pieces(run, language))


def _word_pieces(run: str, language: str) -> Iterator[Piece]:
    if _GROUPED_NUMBER.fullmatch(run):
        yield fold(level(run, language)).replace(",", ""), 0, 0, len(run)
        return
    atoms = [(found.start(), found.end()) for found in _ATOMS.finditer(run)]
    if len(atoms) > 1 or atoms[-1][1] < len(run):
        yield fold(level(run, language)), 0, 0, len(run)
    position = 0
    for first_character, end in atoms:
        start = first_character + elided_length(run[first_character:end])
        atom = run[start:end]
        yield word_term(atom, language), position, start, end
        humps = _humps(atom)
        for offset, (first, last) in enumerate(humps):
            if last - first > 1:
                term = word_term(atom[first:last], language)
                yield term, position + offset, start + first, start + last
        position += max(1, len(humps))


def word_places(run: str) -> list[tuple[int, int]]:
    """Where the words of a run stand: the parts of a code. A number, or what ends in a sign as `C++`
    does, is one word."""
    atoms = [(found.start(), found.end()) for found in _ATOMS.finditer(run)]
    if _GROUPED_NUMBER.fullmatch(run) or atoms[-1][1] < len(run):
        return [(0, len(run))]
    return [(start + elided_length(run[start:end]), end) for start, end in atoms]


def _humps(word: str) -> list[tuple[int, int]]:
    """The parts of a camelCase or PascalCase word; none for other words."""
    if word.isupper() or word[1:].islower() or word[1:] == word[1:].lower():
        return []
    humps = [(found.start(), found.end()) for found in _HUMPS.finditer(word)]
    return humps if len(humps) > 1 else []


def level_characters(run: str) -> tuple[str, list[tuple[int, int]] | None]:
    """The levelled characters of a run, each with the span it came from; None where nothing moved."""
    if unicodedata.is_normalized("NFKC", run):
        return run.translate(SIMPLIFIED), None
    text: list[str] = []
    spans: list[tuple[int, int]] = []
    for found in _CLUSTER.finditer(run):
        plain = unicodedata.normalize("NFKC", found.group()).translate(SIMPLIFIED)
        text.append(plain)
        spans += [found.span()] * len(plain)
    return "".join(text), spans


def _grams(text: str, size: int) -> Iterable[tuple[int, int]]:
    """All sequences of `size` characters; a shorter text is one."""
    if len(text) <= size:
        return ((0, len(text)),)
    return zip(range(len(text)), range(size, len(text) + 1), strict=False)


def _chinese_words(text: str) -> Iterator[tuple[int, int]]:
    for run in _HAN.finditer(text):
        begin = run.start()
        for _, first, last in rjieba.tokenize(run.group(), mode="search"):
            yield begin + first, begin + last


def _pieces(
    text: str, spans: list[tuple[int, int]] | None, places: set[tuple[int, int]]
) -> list[Piece]:
    ordered = sorted(places)
    if spans is None:
        return [(text[first:last], first, first, last) for first, last in ordered]
    return [
        (text[first:last], first, spans[first][0], spans[last - 1][1]) for first, last in ordered
    ]


def east_asian_pieces(run: str, language: str) -> list[Piece]:
    """Chinese words and all character pairs; Japanese (no dictionary here) as pairs only."""
    text, spans = level_characters(run)
    places = set(_grams(text, 2))
    if language != "ja":
        places.update(_chinese_words(text))
    return _pieces(text, spans, places)


def east_asian_words(text: str) -> set[tuple[int, int]]:
    """The places of Chinese dictionary words, long ones and the words within them."""
    found: set[tuple[int, int]] = set()
    for run in RUNS.finditer(text):
        if run.lastgroup == "east_asian":
            plain, spans = level_characters(run.group())
            pieces = _pieces(plain, spans, set(_chinese_words(plain)))
            found |= {(run.start() + start, run.start() + end) for _, _, start, end in pieces}
    return found


def hangul_pieces(run: str, language: str) -> list[Piece]:
    """The word as written, particles and all, and its syllable pairs."""
    text, spans = level_characters(run)
    return _pieces(text, spans, {*_grams(text, 2), (0, min(len(text), 100))})


def no_blanks_pieces(run: str, language: str) -> list[Piece]:
    """Character triples of Thai, Lao, Khmer and Burmese."""
    text, spans = level_characters(run)
    return _pieces(text, spans, set(_grams(text, 3)))
