"""Plain text → paragraphs with line numbers."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import BlockKind, Coverage, ExtractionError, Fault, Limits
from tests.extraction.reading import block_of, read, texts


def test_paragraphs_know_their_lines() -> None:
    extracted = read("text", "first\nstill first\n\n\n  second\n")
    assert texts(extracted) == ["first\nstill first", "second"]
    assert [block.line for block in extracted.blocks] == [1, 5]
    assert {block.kind for block in extracted.blocks} == {BlockKind.PARAGRAPH}
    assert extracted.coverage == Coverage("lines", 3, 3)


def test_long_log_is_cut_so_that_lines_stay_near() -> None:
    extracted = read("text", "\n".join(f"event {number}" for number in range(1, 251)))
    assert [block.line for block in extracted.blocks] == [1, 101, 201]
    assert block_of(extracted, "event 250").line == 201


def test_invisible_marks_and_controls_go() -> None:
    assert read("text", "zero\u200bwidth so\u00adft \x07 bell").text == "zerowidth soft bell"


def test_text_without_words_is_empty() -> None:
    assert read("text", " \n\t\n").text == ""


def test_too_much_text_is_refused() -> None:
    with pytest.raises(ExtractionError) as caught:
        read("text", "word " * 100, limits=Limits(max_text_chars=100))
    assert caught.value.fault is Fault.TOO_LARGE


def _headings(data: str, filename: str) -> list[tuple[int, str, int | None]]:
    extracted = read("text", data, filename)
    return [
        (block.level, extracted.text[block.start : block.end], block.line)
        for block in extracted.blocks
        if block.kind is BlockKind.HEADING
    ]


def test_org_headings() -> None:
    data = "intro\n* Copies\n5 per sheet\n** TODO Paper :stock:\n*bold* text\n"
    assert _headings(data, "a.org") == [(1, "Copies", 2), (2, "Paper", 4)]
    assert read("text", data, "a.org").text.endswith("*bold* text")


def test_rst_headings_by_the_order_of_their_rules() -> None:
    data = (
        "=====\nGuide\n=====\n\nSetup\n-----\ntext\n\nDetails\n~~~~~~~\n\nUse\n---\n\n"
        "no title\n--\n\n=== ===\na   b\n=== ===\n"
    )
    assert _headings(data, "a.rst") == [
        (1, "Guide", 1),
        (2, "Setup", 5),
        (3, "Details", 9),
        (2, "Use", 12),
    ]
    extracted = read("text", data, "a.rst")
    assert extracted.title == "Guide"
    assert block_of(extracted, "text").line == 7


def test_asciidoc_headings() -> None:
    assert _headings("= Guide\n\n== Setup ==\ntext\n", "a.adoc") == [
        (1, "Guide", 1),
        (2, "Setup", 3),
    ]


def test_subtitles_read_as_speech_with_times() -> None:
    extracted = read(
        "text",
        "WEBVTT\n\n1\n00:00:05.000 --> 00:00:07.000 align:left\n<v Ann>We are\nin <i>Ulm</i>.\n\n"
        "00:00:08.000 --> 00:00:09.000\n<v Ann>Truly.\n\n00:00:10.000 --> 00:00:11.000\n<v Bo>Yes.",
        "a.vtt",
    )
    assert texts(extracted) == ["[00:00:05] Ann: We are in Ulm. Truly. Bo: Yes."]
    assert extracted.blocks[0].line == 4


def test_long_subtitles_are_cut_into_passages() -> None:
    cue = "{0}\n00:{0:02}:00,000 --> 00:{0:02}:05,000\n" + "word " * 50 + "\n\n"
    extracted = read("text", "".join(cue.format(number) for number in range(10)), "a.srt")
    assert [text[:10] for text in texts(extracted)] == [
        "[00:00:00]",
        "[00:03:00]",
        "[00:06:00]",
        "[00:09:00]",
    ]
