"""Terms, their places, and what a query makes of them."""

from __future__ import annotations

import pytest

from knowledge.lexical.analyzer import (
    MAX_QUERY_WORDS,
    analyze,
    highlight_spans,
    query_terms,
    query_words,
)


def terms(text: str, language: str = "en") -> list[str]:
    return [token.term for token in analyze(text, language)]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("PPR-9087", "ppr-9087", {"ppr", "9087"}),
        ("ＰＰＲ－９０８７", "ppr-9087", {"ppr", "9087"}),
        ("ERR_0x80", "err_0x80", {"err", "0x80"}),
        ("foo.bar", "foo.bar", {"foo", "bar"}),
        ("user@host", "user@host", {"user", "host"}),
        ("v1.2.3", "v1.2.3", {"v1", "2", "3"}),
        ("C++", "c++", {"c"}),
        ("C#", "c#", {"c"}),
        ("parseHTTPReply", "parsehttpreply", {"parse", "http", "reply"}),
        ("max_row_count", "max_row_count", {"max", "row", "count"}),
    ],
)
def test_code_comes_whole_and_in_parts(text: str, whole: str, parts: set[str]) -> None:
    found = terms(text, "")
    assert found[0] == whole
    assert set(found[1:]) == parts


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("ＡＢＣ", "abc", ""),
        ("門禁卡", "门禁卡", "zh"),
        ("ｶﾞｰﾄﾞ", "ガード", "ja"),
        ("Häusern", "Haus", "de"),
        ("Müller", "Mueller", "de"),
        ("STRASSE", "Straße", "de"),
        ("книгами", "книги", "ru"),
        ("ещё", "еще", "ru"),
        ("الكتاب", "كِتَاب", "ar"),
        ("किताबों", "किताब", "hi"),
        ("kitapları", "KİTAP", "tr"),
        ("IŞIK", "ışık", "tr"),
        ("policies", "policy", "en"),
        ("l'eau", "eau", "fr"),
        ("l’été", "ete", "fr"),
        ("don't", "don’t", "en"),
        ("today's", "today", "en"),
        ("café", "cafe", "en"),
        ("1,250,000", "1250000", "en"),
        ("co‑op", "co-op", "en"),
        ("servers", "server", "zh"),
        ("ﬁnance", "finance", ""),
    ],
)
def test_spellings_of_one_word_are_one_term(one: str, other: str, language: str) -> None:
    assert terms(one, language) == terms(other, language)


def test_without_a_language_nothing_is_stemmed() -> None:
    assert terms("Policies", "") == ["policies"]


def test_chinese_word_is_found_inside_a_sentence() -> None:
    found = terms("差旅费报销期限", "zh")
    assert {"差旅", "差旅费", "报销", "期限", "费报"} <= set(found)
    assert len(found) == len(set(found))


def test_single_ideograph_is_kept() -> None:
    assert terms("税", "zh") == ["税"]
    assert terms("A股", "zh") == ["a", "股"]


def test_japanese_is_cut_across_its_scripts() -> None:
    assert terms("休む日", "ja") == ["休む", "む日"]


def test_korean_word_comes_whole_and_in_pairs() -> None:
    assert set(terms("휴가는", "ko")) == {"휴가는", "휴가", "가는"}


def test_thai_comes_in_triples() -> None:
    assert terms("วันลา", "th") == ["วัน", "ันล", "นลา"]


def test_positions_count_words() -> None:
    tokens = analyze("the PPR-9087 form", "")
    assert [(token.term, token.position) for token in tokens] == [
        ("the", 0),
        ("ppr-9087", 1),
        ("ppr", 1),
        ("9087", 2),
        ("form", 3),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Die Häuser (PPR-9087) — l'eau, ＡＢＣ！ 門禁卡の報告ｶﾞｰﾄﾞ ﬁn 한국어 สวัสดี किताबों İstanbul",
        "e\u0301te\u0301 getUserName 1,000.5 user@host.com \U0001f469\u200d\U0001f4bb x\u200cy",
    ],
)
@pytest.mark.parametrize("language", ["", "en", "zh", "ja", "tr", "hi", "fr"])
def test_spans_lead_to_the_original_text(text: str, language: str) -> None:
    tokens = analyze(text, language)
    assert tokens
    for token in tokens:
        piece = text[token.start : token.end]
        assert piece
        assert piece == piece.strip()
        again = [other.term for other in analyze(piece, language)]
        # A hump of camelCase or the rest after an elision reads the same alone.
        assert token.term in again
    positions = [token.position for token in tokens]
    assert max(positions) - min(positions) < len(text)


def test_query_stems_each_word_under_each_language() -> None:
    found = query_terms("Häuser policies", ["de", "en"])
    assert {"haus", "polici"} <= set(found)


def test_query_drops_function_words_of_its_languages() -> None:
    assert query_terms("What is the limit of PPR?", ["en"]) == ["limit", "ppr"]
    assert query_terms("报销的期限是什么？", ["zh"]) == ["报销", "期限"]
    assert query_terms("Welche Fristen gelten für die Abrechnung?", ["de"])[0] == "frist"


def test_query_of_function_words_only_is_searched_as_it_is() -> None:
    assert query_terms("to be or not to be", ["en"]) == ["to", "be", "or", "not"]


@pytest.mark.parametrize(
    "text", ["", "   ", "?!…", "'\"\\:*&|()<->", "\U0001f600", "\u0301", "\ud800"]
)
def test_query_without_words_has_no_terms(text: str) -> None:
    assert query_terms(text, ["en", "zh"]) == []


def test_repeated_words_are_kept_for_weights() -> None:
    text = "Travel: the limit for travel"
    assert [word.variants for word in query_words(text, ["en", "de"])].count(("travel",)) == 2
    assert query_terms(text, ["en"]) == ["travel", "limit"]


def weights(text: str, *languages: str) -> dict[str, float]:
    return {term: word.weight for word in query_words(text, languages) for term in word.variants}


def test_a_code_counts_more_than_its_parts() -> None:
    found = weights("restart CleanCo err_0x80 invoices", "en")
    assert found["cleanco"] == found["err_0x80"] == found["invoic"] == 1
    assert found["clean"] == found["err"] == found["0x80"] == pytest.approx(0.7)


def test_chinese_words_count_more_than_chance_pairs_and_long_words() -> None:
    # 中国 and 银行 are words, 国银 is not, 中国银行 has its parts in the query as well.
    found = weights("中国银行", "zh")
    assert found["中国"] == found["银行"] == 1
    assert found["国银"] == found["中国银行"] == pytest.approx(0.4)


def test_other_scripts_count_more_beside_chinese() -> None:
    found = weights("RCEP 协定", "zh", "en")
    assert found["rcep"] == pytest.approx(1.5)
    assert weights("RCEP agreement", "zh", "en")["rcep"] == 1


@pytest.mark.parametrize(
    ("text", "language"),
    [("東京都の人口", "ja"), ("서울특별시 인구", "ko"), ("กรุงเทพมหานคร", "th")],
)
def test_pairs_and_triples_count_alike_where_there_is_no_dictionary(
    text: str, language: str
) -> None:
    assert set(weights(text, language).values()) == {1}


def test_a_full_width_query_weighs_its_words_alike() -> None:
    assert weights("ＲＣＥＰ协定", "zh") == weights("RCEP协定", "zh")


def test_stems_of_one_word_stay_together() -> None:
    assert [word.variants for word in query_words("Häuser policies", ["de", "en"])] == [
        ("haus", "hauser"),
        ("polici",),
    ]


def test_query_is_bounded() -> None:
    words = " ".join(f"word{number}" for number in range(10_000))
    assert len(query_terms(words, ["en", "de"])) <= 2 * MAX_QUERY_WORDS
    assert len(query_terms("门禁卡报销期限" * 5_000, ["zh"])) < 200
    assert query_terms("x" * 1_000_000, [])


def test_highlight_marks_inflected_words_and_merges_what_touches() -> None:
    content = "Policies on travel: the 差旅费报销期限 is 30 days."
    found = query_terms("travel policy 差旅费报销", ["en", "zh"])
    spans = highlight_spans(content, found, ["en", "zh"])
    assert [content[start:end] for start, end in spans] == ["Policies", "travel", "差旅费报销"]


def test_highlight_marks_a_code_by_its_part() -> None:
    content = "See PPR-9087."
    assert highlight_spans(content, ["9087"], []) == [(8, 12)]
    assert highlight_spans(content, [], ["en"]) == []
