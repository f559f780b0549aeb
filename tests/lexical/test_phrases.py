"""Whether a term stands in a text."""

from __future__ import annotations

import pytest

from knowledge.lexical.phrases import MAX_UNITS, PhraseFinder, phrase_identity, phrase_keys

LANGUAGES = ("en", "zh")


def found(text: str, phrase: str, *languages: str) -> list[str]:
    places = PhraseFinder(text).find(phrase, languages or LANGUAGES)
    return [text[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("How many annual leaves do I get?", "annual leave", ["annual leaves"]),
        ("ANNUAL  Leave, annual-leave", "annual leave", ["ANNUAL  Leave", "annual-leave"]),
        ("an annual report on leave", "annual leave", []),
        ("leave annual", "annual leave", []),
        ("e mail or E-Mail or email", "e-mail", ["e mail", "E-Mail"]),
        ("github actions", "GitHub", ["github"]),
        ("C++ and c", "C", ["c"]),
        ("C++ and c", "c++", ["C++"]),
        ("ＰＴＯ and pto", "PTO", ["ＰＴＯ", "pto"]),
        ("about 1,000 and 1000 herons", "1000", ["1,000", "1000"]),
        ("员工年假有几天", "年假", ["年假"]),
        ("員工年假與差旅費", "差旅费", ["差旅費"]),
        ("员工PTO怎么算", "pto", ["PTO"]),
        ("员工PTO怎么算", "员工pto", ["员工PTO"]),
        ("少年假装生病", "年假", []),
        ("他请的假有几天", "假", ["假"]),
        ("中华人民共和国", "人民", ["人民"]),
        ("유급휴가는 며칠인가요", "유급휴가", ["유급휴가"]),
        ("ｱﾊﾟｰﾄの鍵", "アパート", ["ｱﾊﾟｰﾄ"]),
        ("", "heron", []),
        ("heron", "", []),
    ],
)
def test_a_term_is_found_where_its_words_stand_together(
    text: str, phrase: str, expected: list[str]
) -> None:
    assert found(text, phrase) == expected
    if expected:
        assert set(PhraseFinder(text).keys) & phrase_keys(phrase), "it can be looked up"


def test_words_compare_by_their_stems_under_one_language() -> None:
    assert found("die Häuser", "Haus", "de") == ["Häuser"]
    assert found("die Häuser", "Haus", "en") == []
    assert found("annual leaves", "annual leave", "") == []
    assert set(PhraseFinder("die Häuser").keys) & phrase_keys("Haus")
    assert found("الإجازة السنوية", "إجازة", "ar") == ["الإجازة"]
    assert set(PhraseFinder("الإجازة السنوية").keys) & phrase_keys("إجازة")


def test_function_words_must_be_written_as_in_the_term() -> None:
    assert found("does it work in IT", "IT") == ["IT"]
    assert found("what is time off", "time off") == ["time off"]
    assert found("the who and the WHO", "WHO") == ["WHO"]


def test_identity_levels_what_a_search_levels() -> None:
    assert phrase_identity("Paid  Time-Off") == phrase_identity("paid time off")
    assert phrase_identity("差旅費") == phrase_identity("差旅费")
    assert phrase_identity("ＰＴＯ") == phrase_identity("pto")
    assert phrase_identity("Café") == phrase_identity("cafe")
    assert phrase_identity("C++") != phrase_identity("C")
    assert phrase_identity("leave") != phrase_identity("leaves")


def test_a_long_text_is_searched_at_its_beginning() -> None:
    text = "heron " * (MAX_UNITS - 1) + "stork crane"
    assert len(found(text, "heron")) == MAX_UNITS - 1
    assert found(text, "stork") == ["stork"]
    assert found(text, "crane") == []
    assert len(PhraseFinder("差旅费" * 5_000).keys) < 10
