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
