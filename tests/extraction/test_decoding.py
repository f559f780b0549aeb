"""Bytes of any encoding → text."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import ExtractionError, Fault
from knowledge.extraction.decoding import decode


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-32-le", b"\xff\xfe\x00\x00"),
        ("utf-32-be", b"\x00\x00\xfe\xff"),
    ],
)
def test_byte_order_mark_decides_and_goes(encoding: str, mark: bytes) -> None:
    decoded = decode(mark + "Größe 你好".encode(encoding), "a.txt", declared="latin-1")
    assert (decoded.text, decoded.encoding) == ("Größe 你好", encoding)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["Größe geprüft\nfine", "日本語のテキスト。\n二行目 2\n三行目"])
def test_wide_text_without_a_mark(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding), "a.txt").text == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Größe geprüft, schöne Grüße", "cp1252"),
        ("5 ¢ per sheet, 20 °C, £5", "cp1252"),
        ("He said “wait” – twice.", "cp1252"),
        ("©", "cp1252"),
        ("Ñandú, mañana por la mañana", "latin-1"),
        ("Привет, это простой текст на русском языке", "cp1251"),
        ("Привет, это простой текст на русском языке", "koi8-r"),
        ("Привет, это простой текст на русском языке", "cp866"),
        ("ОБЪЯВЛЕНИЕ О СОБРАНИИ", "cp1251"),
        ("日本語のテキストです。カタカナも。", "euc-jp"),
        ("日本語のテキストです。カタカナも。", "cp932"),
        ("請求書,髙橋淳,名古屋", "cp932"),
        ("今天天气很好，我们去公园", "gb18030"),
        ("今天天氣很好，我們去公園", "big5"),
        ("안녕하세요 세계", "euc-kr"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy", "cp1250"),
        ("Zażółć gęślą jaźń", "iso8859-2"),
        ("Αυτό είναι ένα κείμενο", "cp1253"),
        ("İstanbul güzel bir şehir değil mi", "cp1254"),
        ("مرحبا بالعالم هذا نص", "cp1256"),
        ("สวัสดีชาวโลก นี่คือข้อความ", "cp874"),
        ("Die Größe ist schön", "cp850"),
    ],
)
def test_legacy_charset_is_guessed(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding), "a.txt")
    assert decoded.text == text
    assert decoded.warnings == ()


def test_seven_bit_japanese_is_seen_by_its_escapes() -> None:
    assert decode("すみません。".encode("iso-2022-jp"), "a.txt").text == "すみません。"


@pytest.mark.parametrize(
    ("label", "encoding"),
    [("ks_c_5601-1987", "cp949"), ("GB2312", "gb18030"), ("x-sjis", "cp932"), ("big5", "cp950")],
)
def test_declared_charset_by_its_common_name(label: str, encoding: str) -> None:
    text = {"cp949": "똠방각하", "gb18030": "镕", "cp932": "①髙", "cp950": "裏"}[encoding]
    assert decode(text.encode(encoding), "a.html", declared=label).text == text


def test_utf8_wins_over_a_wrong_declaration() -> None:
    text = "Müller, größer, schöner"
    assert decode(text.encode(), "a.html", declared="iso-8859-1").text == text


def test_wrong_declaration_of_utf8_is_passed_over() -> None:
    assert decode("köstlich".encode("cp1252"), "a.html", declared="utf-8").text == "köstlich"


@pytest.mark.parametrize("label", ["no-such-charset", "rot13", "zlib", "", "utf-16"])
def test_useless_declaration_does_no_harm(label: str) -> None:
    assert decode("Größe".encode("cp1252"), "a.html", declared=label).text == "Größe"


def test_few_bad_bytes_in_utf8_are_replaced_and_reported() -> None:
    decoded = decode("é è à ü ö ä\n".encode() * 20 + b"bad \xff\xfe end", "a.txt")
    assert decoded.text.endswith("bad \ufffd\ufffd end")
    assert decoded.warnings == ("2 characters are not valid UTF-8 and shown as \ufffd.",)


def test_replacement_sign_of_the_author_is_no_fault() -> None:
    assert decode("a \ufffd b".encode(), "a.txt").warnings == ()


def test_all_line_ends_become_one() -> None:
    assert decode(b"a\r\nb\rc\nd", "a.txt").text == "a\nb\nc\nd"


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x00\x01\x02\x03" * 100])
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(ExtractionError) as caught:
        decode(data, "blob.bin")
    assert caught.value.fault is Fault.UNSUPPORTED
    assert "blob.bin holds binary data" in caught.value.message


def test_stray_zero_bytes_do_not_make_text_binary() -> None:
    assert "line two" in decode(b"line one\x00\nline two\n" * 20, "a.log").text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("Größe und so weiter ", "cp1252"), ("Привет мир ", "cp1251"), ("你好世界，我们 ", "gb18030")],
)
def test_long_line_is_judged_by_its_beginning(text: str, encoding: str) -> None:
    data = (text * 50_000).encode(encoding)
    assert decode(data, "a.txt").text == text * 50_000
