"""XML of any vocabulary → readable text, whatever its entities say."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import ExtractionError, Fault
from tests.extraction.reading import block_of, read, row_of, texts


def test_records_read_as_lines() -> None:
    extracted = read(
        "xml",
        "<?xml version='1.0'?>\n<staff><person id='7'><name>Ann</name><room>12</room></person>\n"
        "<person><name>Bo</name><room floor='2'>13</room></person></staff>",
    )
    assert texts(extracted) == ["id 7\nname: Ann\nroom: 12", "name: Bo\nroom (floor 2): 13"]
    assert block_of(extracted, "Bo").line == 3


def test_attributes_alone_carry_text() -> None:
    assert texts(read("xml", "<parts><part no='4' name='Bolt'/><part name='Nut'/></parts>")) == [
        "part: no 4, name Bolt\npart: name Nut"
    ]


def test_prose_with_sections_and_inline_marks() -> None:
    extracted = read(
        "xml",
        "<book><title>Guide</title><chapter><title>Start</title><para>Press <b>the</b> key"
        "<i>s</i>.</para><para>Wait.</para></chapter></book>",
    )
    assert texts(extracted) == ["Guide", "Start", "Press the keys.", "Wait."]
    assert [block.level for block in extracted.blocks] == [1, 2, 0, 0]
    assert extracted.title == "Guide"


def test_feed_with_escaped_html() -> None:
    extracted = read(
        "xml",
        "<rss><channel><title>News</title><item><title>One</title>"
        "<description>&lt;p&gt;First &lt;b&gt;item&lt;/b&gt;&lt;/p&gt;</description></item>"
        "</channel></rss>",
    )
    assert "title: One\ndescription: First item" in texts(extracted)
    assert extracted.title == "News"


def test_table_with_header() -> None:
    extracted = read(
        "xml",
        "<doc><table><title>Torque</title><tgroup><thead><row><entry>Metal</entry><entry>Nm</entry>"
        "</row></thead><tbody><row><entry>Copper</entry><entry>12</entry></row></tbody></tgroup>"
        "</table></doc>",
    )
    assert texts(extracted)[0] == "Torque"
    assert row_of(extracted, "Copper") == {"Metal": "Copper", "Nm": "12"}


@pytest.mark.parametrize("encoding", ["windows-1251", "utf-16", "koi8-r"])
def test_declared_encoding(encoding: str) -> None:
    data = f"<?xml version='1.0' encoding='{encoding}'?><a>Афиша концерта</a>".encode(encoding)
    assert read("xml", data).text == "a: Афиша концерта"


def test_entities_are_not_expanded_and_nothing_is_fetched() -> None:
    extracted = read(
        "xml",
        "<!DOCTYPE x [<!ENTITY own 'SECRET'><!ENTITY file SYSTEM 'file:///etc/hostname'>]>"
        "<x><y>one &own; two &file;</y></x>",
    )
    assert "SECRET" not in extracted.text
    assert extracted.text == "y: one &own; two &file;"


def test_billion_laughs() -> None:
    levels = "".join(
        f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" if n else "<!ENTITY l0 'lol'>" for n in range(12)
    )
    assert read("xml", f"<!DOCTYPE x [{levels}]><x>a &l11;</x>").text.endswith("a &l11;")


def test_named_signs_of_html_are_known() -> None:
    assert read("xml", "<x>Caf&eacute;&nbsp;&amp; bar</x>").text == "x: Café & bar"


def test_undeclared_entity_is_read_without_tags() -> None:
    extracted = read(
        "xml", "<a>\n<!-- no -->\n<b>one &undeclared; two</b><c><![CDATA[x < y]]></c></a>"
    )
    assert extracted.text == "one &undeclared; two x < y"
    assert extracted.warnings == (
        "The file is not well-formed XML (line 3); its text is read without tags.",
    )


@pytest.mark.parametrize("depth", [201, 5000])
def test_depth_is_bounded(depth: int) -> None:
    with pytest.raises(ExtractionError) as caught:
        read("xml", "<a>" * depth + "x" + "</a>" * depth)
    assert caught.value.fault is Fault.TOO_LARGE


def test_empty_document_has_no_text() -> None:
    assert read("xml", "<a><b/><!-- c --></a>").text == ""
