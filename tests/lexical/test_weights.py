"""BM25 by hand, and literals that PostgreSQL reads."""

from __future__ import annotations

import math
import re

import pytest

from knowledge.lexical.analyzer import QueryWord, Token, analyze, query_terms
from knowledge.lexical.weights import (
    DIMENSIONS,
    MAX_NONZERO,
    MAX_POSITION,
    MAX_POSITIONS,
    document_weights,
    length_of,
    term_dimension,
    tsquery_literal,
    tsvector_literal,
    word_weights,
)

# One quoted lexeme: quotes and backslashes inside are doubled.
LEXEME = r"'(?:[^'\\]|''|\\\\)+'"
NASTY = [
    *("'", "''", "\\", "\\'", "a'b", "a\\", "\\\\'", "&", "|", "!", "<->", "(", ")", ":*", "a:b"),
    *("\x01\x02", "\t\n", "\x7f", "\U0001f600", "\U0001f469\u200d\U0001f4bb", "\u202e", "\ufeff"),
    *("%s", "{}", "--", ";", "$$", "½", "ﷺ", "x" * 5_000, "报销' OR '1'='1", "d'\\a", "\ud800a"),
]


def tokens_of(*words: str) -> list[Token]:
    return [Token(word, place, place, place + 1) for place, word in enumerate(words)]


def test_document_weight_is_the_saturated_frequency() -> None:
    weights = document_weights(tokens_of("a", "a", "b", "c"), average_length=2.0)
    # K = 1.2 * (1 - 0.75 + 0.75 * 4 / 2) = 2.1; a: 2 * 2.2 / 4.1, b: 2.2 / 3.1
    assert weights[term_dimension("a")] == pytest.approx(1.0731707)
    assert weights[term_dimension("b")] == pytest.approx(0.7096774)
    assert len(weights) == 3


def words_of(*terms: str) -> list[QueryWord]:
    return [QueryWord((term,)) for term in terms]


def test_query_weight_is_the_idf() -> None:
    weights = word_weights(words_of("rare", "common", "unseen"), {"rare": 1, "common": 9}, 10)
    assert weights == {
        term_dimension("rare"): pytest.approx(math.log(1 + 9.5 / 1.5)),
        term_dimension("common"): pytest.approx(math.log(1 + 1.5 / 9.5)),
    }


def test_stems_of_one_word_are_as_rare_as_the_word() -> None:
    # 9 of 10 passages are English; the stem that the one stray French passage has is not rarer.
    word = QueryWord(("invoic", "invoice"))
    weights = word_weights([word], {"invoic": 8, "invoice": 1}, 10)
    idf = math.log(1 + 1.5 / 9.5)
    assert weights == {term_dimension("invoic"): pytest.approx(idf), term_dimension("invoice"): pytest.approx(idf)}  # fmt: skip


def test_words_count_as_often_and_as_much_as_the_query_has_them() -> None:
    words = [QueryWord(("a",)), QueryWord(("b",), 0.5), QueryWord(("a",)), QueryWord(("unseen",))]
    weights = word_weights(words, {"a": 1, "b": 1}, 3)
    idf = math.log(1 + 2.5 / 1.5)
    assert weights == {term_dimension("a"): pytest.approx(2 * idf), term_dimension("b"): pytest.approx(idf / 2)}  # fmt: skip


def test_a_word_known_more_often_than_there_are_passages_keeps_a_positive_weight() -> None:
    assert word_weights([QueryWord(("a", "b"))], {"a": 9, "b": 9}, 10)[term_dimension("a")] > 0


def test_inner_product_is_bm25() -> None:
    text = document_weights(tokens_of("a", "b"), average_length=2.0)
    query = word_weights(words_of("a", "z"), {"a": 1}, 3)
    score = sum(weight * text.get(dimension, 0.0) for dimension, weight in query.items())
    assert score == pytest.approx(math.log(1 + 2.5 / 1.5) * 2.2 / 2.2)


def test_stale_counts_never_give_a_negative_weight() -> None:
    assert all(weight > 0 for weight in word_weights(words_of("a"), {"a": 50}, 10).values())


def test_empty_text_weighs_nothing() -> None:
    assert document_weights([], average_length=0.0) == {}
    assert length_of([]) == 0


def test_dimensions_are_stable_and_in_range() -> None:
    found = [term_dimension(f"term{number}") for number in range(1_000)]
    assert all(0 <= dimension < DIMENSIONS for dimension in found)
    assert len(set(found)) == 1_000
    assert term_dimension("报销") == 133_220_462


def test_terms_of_one_dimension_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowledge.lexical.weights.term_dimension", lambda term: 7)
    weights = word_weights(words_of("a", "b"), {"a": 1, "b": 1}, 3)
    assert weights == {7: pytest.approx(2 * math.log(1 + 2.5 / 1.5))}


def test_only_the_heaviest_entries_are_kept() -> None:
    many = tokens_of(*(f"t{number}" for number in range(MAX_NONZERO + 500)), "heavy", "heavy")
    weights = document_weights(many, average_length=100.0)
    assert len(weights) == MAX_NONZERO
    assert term_dimension("heavy") in weights


def test_vector_literal_lists_positions() -> None:
    assert tsvector_literal(analyze("door gate door", "")) == "'door':1,3 'gate':2"


def test_vector_literal_keeps_to_the_limits_of_postgresql() -> None:
    literal = tsvector_literal(
        [Token("often", place * 10, 0, 1) for place in range(5_000)]
        + [Token("far", 90_000, 0, 1), Token("far", 90_001, 0, 1), Token("é" * 3_000, 0, 0, 1)]
    )
    often, far, long = literal.split(" ")
    assert len(often.split(":")[1].split(",")) == MAX_POSITIONS
    assert far == f"'far':{MAX_POSITION}"
    assert len(long.split(":")[0].strip("'").encode()) == 2_046


def test_vector_literal_stays_below_a_megabyte() -> None:
    many = tokens_of(*(f"term{number}" for number in range(200_000)))
    assert len(tsvector_literal(many)) < 1_400_000  # as text; PostgreSQL needs less


@pytest.mark.parametrize("text", NASTY)
def test_no_input_breaks_a_literal(text: str) -> None:
    found = query_terms(f"lamp {text} {text}gate{text}", ["en", "zh"])
    literal = tsquery_literal(found)
    assert "lamp" in found
    assert re.fullmatch(rf"{LEXEME}(?: \| {LEXEME})*", literal)
    vector = tsvector_literal(analyze(f"{text} x{text}y", "en"))
    assert re.fullmatch(rf"(?:{LEXEME}:[\d,]+ ?)*", vector)


def test_quotes_and_backslashes_are_doubled() -> None:
    assert tsquery_literal(["it's", "a\\b"]) == "'it''s' | 'a\\\\b'"
    assert tsquery_literal([]) == ""
