"""Which passages say the same."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from knowledge.lexical.analyzer import Token, analyze
from knowledge.lexical.fingerprint import fingerprint, is_near_duplicate

ENGLISH = """Employees may carry over unused annual leave into the following calendar year, provided that the
head of the department agrees in writing before the end of December. Leave that has been carried over lapses
at the end of March, unless illness kept the employee from taking it. The personnel office keeps the account
of every employee, answers questions about it and sends a statement within 30 days.
"""
CHINESE = (
    "员工当年没有休完的年假可以结转至下一年度,但须在十二月底之前经部门负责人书面同意。结转的年假应在次年三月底之前休完,"
    "逾期作废,因病未能休假的除外。人事部门负责登记每位员工的假期天数,解答相关问题,并在三十天之内寄送对账单。"
)
TRADITIONAL = (
    "員工當年沒有休完的年假可以結轉至下一年度,但須在十二月底之前經部門負責人書面同意。結轉的年假應在次年三月底之前休完,"
    "逾期作廢,因病未能休假的除外。人事部門負責登記每位員工的假期天數,解答相關問題,並在三十天之內寄送對賬單。"
)


def of(text: str, language: str = "en") -> int:
    return fingerprint(analyze(text, language))


def same(one: str, other: str, language: str = "en") -> bool:
    return is_near_duplicate(of(one, language), of(other, language))


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@pytest.mark.parametrize(
    "other",
    [
        ENGLISH.upper(),
        ENGLISH.replace("\n", " "),
        ENGLISH.replace(" ", "   \n\t"),
        ENGLISH.replace(",", "").replace(".", " –"),
        ENGLISH.replace("Employees", "* **Employees**"),
        "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in ENGLISH),
    ],
    ids=["case", "lines", "blanks", "punctuation", "marks", "width"],
)
def test_the_same_text_in_another_form_is_the_same(other: str) -> None:
    assert other != ENGLISH
    assert same(ENGLISH, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("30 days", "60 days"),
        ("December", "November"),
        ("30 days", "three weeks"),
        ("may carry", "may not carry"),
        ("may carry", "can't carry"),
    ],
)
def test_another_number_date_or_its_opposite_is_another(old: str, new: str) -> None:
    assert not same(ENGLISH, ENGLISH.replace(old, new))
    assert not same(ENGLISH * 20, ENGLISH * 19 + ENGLISH.replace(old, new)), "once in a long text"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("三十天", "六十天"),
        ("三十天", "30天"),
        ("十二月底", "十一月底"),
        ("可以结转", "不可以结转"),
        ("三十天", "两周"),
    ],
)
def test_another_number_date_or_its_opposite_in_chinese(old: str, new: str) -> None:
    assert not same(CHINESE, CHINESE.replace(old, new), "zh")
    assert not same(CHINESE * 20, CHINESE * 19 + CHINESE.replace(old, new), "zh")


@pytest.mark.parametrize(
    "other",
    [
        TRADITIONAL,
        CHINESE.replace(",", "，"),
        CHINESE.replace("。", "。\n\n　"),
    ],
    ids=["traditional", "width", "layout"],
)
def test_chinese_in_another_form_is_the_same(other: str) -> None:
    assert other != CHINESE
    assert same(CHINESE, other, "zh")


def test_a_word_in_a_hundred_may_differ() -> None:
    assert same(ENGLISH * 3, ENGLISH * 2 + ENGLISH.replace("statement", "report"))
    assert same(CHINESE * 3, CHINESE * 2 + CHINESE.replace("对账单", "结算单"), "zh")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Smoking is allowed here.", "Smoking is not allowed here."),
        ("Smoking is allowed here.", "Parking is allowed here."),
        ("此处可以吸烟。", "此处不可以吸烟。"),
        ("此处可以吸烟。", "此处可以停车。"),
    ],
)
def test_in_a_short_passage_every_word_counts(one: str, other: str) -> None:
    for language in ("en", "zh"):
        assert not same(one, other, language)
        assert same(one, f"  {one.upper()}\n", language)


def test_different_texts_are_different() -> None:
    other = """The pump P7 is oiled every week. Before the cover is taken off, close valve V3, wait until the
    pressure has gone and hang out the sign. Old oil is collected and handed in at the workshop."""
    assert not same(ENGLISH, other)
    assert not same(
        CHINESE, "门禁卡丢失后应立即到行政部挂失并补办,补办期间凭身份证登记进入办公楼。", "zh"
    )


def test_passages_without_terms_are_like_nothing() -> None:
    assert of("") == of("?! —") == 0
    assert not is_near_duplicate(0, 0)
    assert not is_near_duplicate(0, 1)


def test_short_passages_are_hashed_whole() -> None:
    """Fewer than eight terms: the upper 16 bits are of the telling ones, the lower 48 of all."""
    expected = (
        hashed("7\0one") >> 48 << 48 | hashed("one\0heron\0wade\0in\0room\0" + "7") & (1 << 48) - 1
    )
    assert of("One heron wades in room 7") % (1 << 64) == expected


def test_longer_ones_are_hashed_by_pairs() -> None:
    """Eight times the same word: each pair votes alike, so the vote is the pair's own hash."""
    tokens = [Token("heron", place, 0, 0) for place in range(8)]
    expected = hashed("") >> 48 << 48 | hashed("heron\0heron") & (1 << 48) - 1
    assert fingerprint(tokens) % (1 << 64) == expected


def test_it_fits_a_signed_column() -> None:
    found = [of(f"Passage number {n} about herons") for n in range(64)]
    assert all(-(1 << 63) <= value < 1 << 63 for value in found)
    assert min(found) < 0 < max(found)
    assert len(set(found)) == 64


def test_up_to_three_bits_may_differ() -> None:
    assert is_near_duplicate(0b1000, 0b1111)
    assert not is_near_duplicate(0b1_0000, 0b1111)
    assert not is_near_duplicate(1, 1 | 1 << 48), "the numbers differ"
    assert is_near_duplicate(-1, -2)
