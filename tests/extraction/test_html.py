"""HTML pages → all that a reader may see."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import BlockKind
from tests.extraction.reading import read, row_of, rows, texts


def _body(markup: str) -> list[str]:
    return texts(read("html", f"<html><body>{markup}</body></html>"))


def test_headings_paragraphs_and_facts_of_the_page() -> None:
    extracted = read(
        "html",
        "<html><head><title>Canteen &amp; menu</title><meta name='author' content='Kim Lee'>"
        "<meta property='article:published_time' content='2026-05-05T08:00:00Z'>"
        "<meta name='description' content='What we cook'></head>"
        "<body><h1>Menu</h1><p>Soup<br>and bread</p><h3>Drinks</h3>Water</body></html>",
    )
    assert extracted.title == "Canteen & menu"
    assert texts(extracted) == ["Menu", "Soup\nand bread", "Drinks", "Water"]
    assert [block.level for block in extracted.blocks] == [1, 0, 3, 0]
    assert extracted.metadata == {
        "author": "Kim Lee",
        "created_at": "2026-05-05T08:00:00+00:00",
        "description": "What we cook",
    }


def test_title_is_the_heading_of_a_page_without_one() -> None:
    assert texts(read("html", "<title>Hours</title><p>9 to 5</p>")) == ["Hours", "9 to 5"]


def test_machinery_is_dropped() -> None:
    assert _body(
        "<script>var a</script><style>p{}</style><template><p>t</p></template><p hidden>h</p>"
        "<p>Seen <span style='display: none'>key</span><svg><text>icon</text></svg>text</p>"
        "<!-- comment --><noscript>Turn on scripts</noscript>"
    ) == ["Seen text", "Turn on scripts"]


def test_closed_answers_stay() -> None:
    assert _body("<div style='display:none'>The answer is 42.</div>") == ["The answer is 42."]


@pytest.mark.parametrize(
    "markup",
    [
        "<div>one</div><div>two</div>",
        "one<p>two",
        "<ul><li>one<li>two</ul>",
        "<dl><dt>one<dd>two</dl>",
        "<button>one</button><button>two</button>",
        "<select><option>one<option>two</select>",
        "<table><tr><td>one<td>two</table>",
        "<a href=a>one</a><a href=b>two</a>",
        "<p>one<img alt='two' src=x></p>",
    ],
)
def test_neighbours_never_run_together(markup: str) -> None:
    text = read("html", markup).text
    assert "one" in text
    assert "two" in text
    assert "onetwo" not in text


def test_inline_elements_do_not_split_words() -> None:
    assert _body("<p>un<b>break</b>able H<sub>2</sub>O</p>") == ["unbreakable H2O"]


def test_lists_are_nested_and_numbered() -> None:
    assert _body(
        "<ol start=3><li>three<ul><li>inner</li></ul></li><li value=7><p>seven</p><p>more</p></li>"
        "<li>eight</li></ol>"
    ) == ["3. three", "  - inner", "7. seven", "more", "8. eight"]


def test_data_table_with_spans() -> None:
    extracted = read(
        "html",
        "<table><caption>Prices</caption><thead><tr><th rowspan=2>Item</th><th colspan=2>Price</th>"
        "</tr><tr><th>net</th><th>gross</th></tr></thead><tbody>"
        "<tr><td rowspan=2>Bolt</td><td>1,00</td><td>1,19</td></tr>"
        "<tr><td>2,00</td><td>2,38<br>approx.</td></tr></tbody></table>",
    )
    assert texts(extracted)[0] == "Prices"
    assert list(rows(extracted)) == [
        {"Item": "Bolt", "Price net": "1,00", "Price gross": "1,19"},
        {"Item": "Bolt", "Price net": "2,00", "Price gross": "2,38 approx."},
    ]


def test_first_row_is_the_header_without_header_cells() -> None:
    extracted = read(
        "html",
        "<table><tr><td>Plan<td><tr><td>City<td>Zone<tr><td>Ulm<td>2<tr><td>Bern<td>1</table>",
    )
    assert texts(extracted)[0] == "Plan"
    assert row_of(extracted, "Bern") == {"City": "Bern", "Zone": "1"}


def test_rows_of_name_and_value_have_no_header() -> None:
    extracted = read("html", "<table><tr><th>Phone<td>55<tr><th>Room<td>12</table><p>after</p>")
    assert texts(extracted) == ["| Phone | 55 |", "| Room | 12 |", "after"]
    assert {block.table_header for block in extracted.blocks} == {""}


def test_layout_table_is_read_as_blocks() -> None:
    assert _body(
        "<table><tr><td><h2>Left</h2>menu</td><td><table><tr><td>a</td><td>b</td></tr>"
        "<tr><td>c</td><td>d</td></tr></table></td></tr></table>"
    ) == ["Left", "menu", "| a | b |\n| --- | --- |", "| c | d |"]


def test_preformatted_text_keeps_its_lines() -> None:
    extracted = read("html", "<pre>def f():\n    return 1</pre>")
    assert texts(extracted, BlockKind.CODE) == ["def f():\n    return 1"]


def test_declared_charset_far_down() -> None:
    page = f"<html><head><script>{'x' * 5000}</script><meta charset='koi8-r'></head><p>Да нет</p>"
    assert read("html", page.encode("koi8-r")).text == "Да нет"


def test_frames_and_their_replacement_text() -> None:
    text = read("html", "<frameset><noframes><body>No <b>frames</b> here</body></noframes>").text
    assert " ".join(text.split()) == "No frames here"


def test_hostile_depth_loses_no_text() -> None:
    depth = 50_000
    extracted = read("html", f"<p>start</p>{'<div>' * depth}deep{'</div>' * depth}<p>end</p>")
    assert texts(extracted) == ["start", "deep", "end"]
    assert extracted.warnings == (
        "The page is nested too deeply; headings, lists and tables are read as plain text.",
    )


def test_huge_spans_are_bounded() -> None:
    extracted = read(
        "html", "<table><tr><th colspan=999999999>a<th>b<tr><td rowspan=999999999>1<td>2</table>"
    )
    assert len(extracted.text) < 2000


def test_embedded_pictures_leave_no_data() -> None:
    page = f"<p>Logo <img alt='ours' src='data:image/png;base64,{'QUJD' * 50}'></p>"
    assert read("html", page).text == "Logo ours"


def test_empty_page_has_no_text() -> None:
    assert read("html", "<html><body><script>x</script></body></html>").text == ""
    assert read("html", "<!-- nothing -->").text == ""
