"""Markdown → headings, lists, tables, code."""

from __future__ import annotations

from knowledge.extraction.base import BlockKind
from tests.extraction.reading import block_of, read, row_of, texts


def test_headings_of_both_kinds_with_levels_and_lines() -> None:
    extracted = read("markdown", "Top\n===\n\ntext\n\n## Second ##\n\nThird\n---\n\n#### Fourth\n")
    headings = [block for block in extracted.blocks if block.kind is BlockKind.HEADING]
    assert texts(extracted, BlockKind.HEADING) == ["Top", "Second", "Third", "Fourth"]
    assert [block.level for block in headings] == [1, 2, 2, 4]
    assert [block.line for block in headings] == [1, 6, 8, 11]
    assert extracted.title == "Top"


def test_front_matter_becomes_facts_and_title() -> None:
    extracted = read(
        "markdown",
        "---\ntitle: Travel rules\nauthors: [Ann, Bo]\ndate: 2026-03-01\nlastmod: soon\n"
        "tags: [money, trips]\nversion: 1.10\nteam: {name: Finance}\n---\nBook early.\n",
    )
    assert extracted.title == "Travel rules"
    assert extracted.text == "Travel rules\n\nBook early."
    assert block_of(extracted, "Book early.").line == 10
    assert extracted.metadata == {
        "author": "Ann, Bo",
        "created_at": "2026-03-01T00:00:00",
        "lastmod": "soon",
        "tags": "money, trips",
        "version": "1.1",
        "team.name": "Finance",
    }


def test_front_matter_title_is_not_said_twice() -> None:
    assert read("markdown", "---\ntitle: Rules\n---\n# Rules\n").text == "Rules"


def test_toml_front_matter() -> None:
    extracted = read("markdown", '+++\ntitle = "Rules"\n+++\nText.\n')
    assert (extracted.title, extracted.text) == ("Rules", "Rules\n\nText.")


def test_broken_front_matter_is_kept_as_text() -> None:
    assert "a: [b" in read("markdown", "---\na: [b\n---\nText.\n").text


def test_fences_of_both_kinds_are_code() -> None:
    extracted = read("markdown", "```sh\n# one\n```\n\n~~~\n# two\n  three\n~~~\n\n    four\n")
    assert texts(extracted, BlockKind.CODE) == ["# one", "# two\n  three", "    four".strip()]
    assert [block.line for block in extracted.blocks] == [2, 6, 10]
    assert texts(extracted, BlockKind.HEADING) == []


def test_lists_keep_numbers_depth_and_later_paragraphs() -> None:
    extracted = read("markdown", "3. three\n4. four\n\n   more of four\n   - inner\n\n* star\n")
    assert texts(extracted) == ["3. three", "4. four", "more of four", "  - inner", "- star"]


def test_table_has_header_rows_and_lines() -> None:
    extracted = read("markdown", "| a | b |\n|---|:-:|\n| 1 | x\\|y |\n| 2 |  |\n\nafter\n")
    assert row_of(extracted, "1") == {"a": "1", "b": "x|y"}
    assert block_of(extracted, "| 2 |").line == 4
    assert texts(extracted)[-1] == "after"


def test_markup_goes_and_words_stay() -> None:
    text = "**Bold** *it* `code` [link](http://x.example) ![picture](p.png) ~~old~~ &amp; <b>b</b>"
    assert read("markdown", text).text == "Bold it code link picture old & b"


def test_html_blocks_are_read_and_comments_are_not() -> None:
    extracted = read(
        "markdown", "<ul>\n<li>One</li>\n<li>Two</li>\n</ul>\n\n<!-- hidden -->\n\nEnd.\n"
    )
    assert texts(extracted) == ["- One", "- Two", "End."]
    assert extracted.warnings == ()


def test_data_uris_and_scripts_are_left_out() -> None:
    uri = "data:application/octet-stream;base64,QUFBQUFBQUFBQUFBQUFBQUFB"
    extracted = read("markdown", f"![seal]({uri})\n\n<script>\nvar x = '{uri}'\n</script>\n")
    assert extracted.text == "seal"


def test_thematic_break_is_a_line_of_its_own() -> None:
    assert read("markdown", "a\n\n***\n\nb\n").text == "a\n\n---\n\nb"


def test_zero_width_space_does_not_hide_a_heading() -> None:
    assert texts(read("markdown", "\u200b# Hello\n"), BlockKind.HEADING) == ["Hello"]


def test_deep_quotes_keep_their_text() -> None:
    assert "bottom" in read("markdown", "> " * 60 + "bottom\n").text
