"""Word files: what a reader sees, in order, once."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime

import docx
import pytest

from knowledge.extraction.base import BlockKind, Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.docx import DocxExtractor
from knowledge.extraction.docx.numbering import letters, roman

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    f'xmlns:r="{OFFICE}" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)


def _package(body: str, parts: Mapping[str, str] | None = None, *, strict: bool = False) -> bytes:
    """A minimal package; a part `header1` is related as a header with the id `header1`."""
    out = io.BytesIO()
    relations = ""
    with zipfile.ZipFile(out, "w") as archive:
        for name, xml in (parts or {}).items():
            kind = name.rstrip("0123456789")
            target = xml if kind == "aFChunk" else f"{name}.xml"
            relations += f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
            if kind != "aFChunk":
                archive.writestr(
                    f"word/{name}.xml", xml.replace("<w:", "<w:", 1).replace("NS", NAMESPACES, 1)
                )
        document = f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>"
        if strict:
            document = document.replace(
                "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
                "http://purl.oclc.org/ooxml/wordprocessingml/main",
            )
        archive.writestr("word/document.xml", document)
        archive.writestr(
            "word/_rels/document.xml.rels", f"<Relationships>{relations}</Relationships>"
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships><Relationship Id="a" Type="{OFFICE}/officeDocument" '
            'Target="/word/document.xml"/></Relationships>',
        )
    return out.getvalue()


def _p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{_r(text)}</w:p>"


def _r(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def _tc(content: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def _table(*rows: str) -> str:
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"


def _saved(document: docx.document.Document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _extract(data: bytes, limits: Limits | None = None) -> Extracted:
    return DocxExtractor().extract(
        Source(io.BytesIO(data), "case.docx", len(data)), limits or Limits()
    )


def _lines(extracted: Extracted) -> list[str]:
    return [line for line in extracted.text.splitlines() if line]


def test_document_of_the_usual_kind() -> None:
    document = docx.Document()
    document.add_heading("Orchard plan", 0)
    document.add_heading("Trees & soil", 1)
    document.add_paragraph("R&D says pH < 6.")
    document.add_paragraph("Dig", style="List Bullet")
    document.add_paragraph("Plant", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        table.rows[0].cells + table.rows[1].cells, ("Tree", "Age", "Pear", "12"), strict=True
    ):
        cell.text = text
    extracted = _extract(_saved(document))
    assert _lines(extracted) == [
        "Orchard plan", "Trees & soil", "R&D says pH < 6.", "- Dig", "- Plant",
        "| Tree | Age |", "| --- | --- |", "| Pear | 12 |",
    ]  # fmt: skip
    assert [(block.kind, block.level) for block in extracted.blocks][:3] == [
        (BlockKind.HEADING, 1), (BlockKind.HEADING, 1), (BlockKind.PARAGRAPH, 0),
    ]  # fmt: skip
    assert extracted.blocks[-1].table_header.startswith("| Tree | Age |")
    assert (extracted.coverage.unit, extracted.coverage.found) == (
        "paragraphs",
        extracted.coverage.indexed,
    )


def test_properties_become_title_and_metadata() -> None:
    document = docx.Document()
    document.add_paragraph("Text")
    properties = document.core_properties
    properties.title, properties.author = "Orchard plan", "J. Moreau"
    properties.created = datetime(2024, 3, 5, 10, 15, tzinfo=UTC)
    extracted = _extract(_saved(document))
    assert extracted.title == "Orchard plan"
    assert extracted.metadata["author"] == "J. Moreau"
    assert extracted.metadata["created_at"].startswith("2024-03-05T10:15:00")


def test_title_paragraph_stands_in_for_a_missing_title_property() -> None:
    document = docx.Document()
    document.core_properties.title = ""
    document.add_heading("Orchard plan", 0)
    assert _extract(_saved(document)).title == "Orchard plan"


def test_heading_levels_of_translated_and_derived_styles() -> None:
    styles = (
        "<w:styles NS>"
        '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift2"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Outlined"><w:name w:val="Outlined"/>'
        '<w:pPr><w:outlineLvl w:val="3"/></w:pPr></w:style></w:styles>'
    )
    body = "".join(
        _p(name, f'<w:pStyle w:val="{name}"/>') for name in ("berschrift2", "Mine", "Outlined")
    )
    body += _p("own", '<w:outlineLvl w:val="0"/>') + _p("plain")
    blocks = _extract(_package(body, {"styles": styles})).blocks
    assert [block.level for block in blocks] == [2, 2, 4, 1, 0]


def test_package_without_styles_knows_headings_by_their_id() -> None:
    assert _extract(_package(_p("Top", '<w:pStyle w:val="Heading1"/>'))).blocks[0].level == 1


def test_style_that_is_based_on_itself_ends() -> None:
    styles = '<w:styles NS><w:style w:styleId="A"><w:basedOn w:val="A"/></w:style></w:styles>'
    assert _extract(_package(_p("x", '<w:pStyle w:val="A"/>'), {"styles": styles})).text == "x"


NUMBERING = """<w:numbering NS><w:abstractNum w:abstractNumId="0">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>
</w:abstractNum><w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="0"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="1"/></w:num></w:numbering>"""


def _item(text: str, list_id: int, level: int = 0, style: str = "") -> str:
    return _p(
        text, f'{style}<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'
    )


def test_lists_are_numbered_as_word_shows_them() -> None:
    body = (
        _item("one", 1) + _item("sub", 1, 1) + _item("sub", 1, 1) + _item("two", 1) + _item("sub", 1, 1)
        + _item("dot", 3) + _item("three", 1) + _item("seven", 2) + _item("eight", 2) + _item("none", 0)
    )  # fmt: skip
    assert _lines(_extract(_package(body, {"numbering": NUMBERING}))) == [
        "1. one", "  1.a) sub", "  1.b) sub", "2. two", "  2.a) sub", "- dot", "3. three",
        "7. seven", "8. eight", "none",
    ]  # fmt: skip


def test_numbered_heading_shows_its_number() -> None:
    body = _item("Scope", 1, style='<w:pStyle w:val="Heading1"/>')
    assert _extract(_package(body, {"numbering": NUMBERING})).text == "1. Scope"


def test_roman_and_letter_numbers() -> None:
    assert [roman(number) for number in (4, 9, 1994, 0)] == ["iv", "ix", "mcmxciv", "0"]
    assert [letters(number) for number in (1, 26, 27, 0)] == ["a", "z", "aa", "0"]


def test_tracked_changes_read_as_accepted() -> None:
    body = (
        f"<w:p>{_r('Pay ')}<w:del><w:r><w:delText>40</w:delText></w:r></w:del><w:ins>{_r('50')}</w:ins>{_r(' now.')}</w:p>"
        f"<w:p><w:moveTo>{_r('Moved here.')}</w:moveTo></w:p><w:p><w:moveFrom>{_r('Moved here.')}</w:moveFrom></w:p>"
    )
    assert _lines(_extract(_package(body))) == ["Pay 50 now.", "Moved here."]


def test_paragraph_whose_end_is_deleted_goes_on_in_the_next() -> None:
    body = _p("First half ", "<w:rPr><w:del/></w:rPr>") + _p("second half.")
    assert _extract(_package(body)).text == "First half second half."


def test_deleted_table_row_is_left_out() -> None:
    deleted = "<w:trPr><w:del/></w:trPr>" + _tc(_p("gone")) + _tc(_p("gone"))
    rows = [_tc(_p("A")) + _tc(_p("B")), deleted, _tc(_p("1")) + _tc(_p("2"))]
    assert _lines(_extract(_package(_table(*rows)))) == ["| A | B |", "| --- | --- |", "| 1 | 2 |"]


def _box(*lines: str) -> str:
    content = "<w:txbxContent>" + "".join(_p(line) for line in lines) + "</w:txbxContent>"
    return (
        "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>"
        f"{content}</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{content}"
        "</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


def test_text_box_is_read_once_and_lines_that_repeat_stay() -> None:
    body = (
        _p("Start")
        + f"<w:p>{_r('Before')}{_box('Open valve 1', 'Wait', 'Open valve 1')}</w:p>"
        + _p("End")
    )
    extracted = _extract(_package(body))
    assert _lines(extracted) == ["Start", "Before", "Open valve 1", "Wait", "Open valve 1", "End"]
    assert (extracted.coverage.found, extracted.coverage.indexed) == (6, 6)


def test_content_controls_links_fields_and_formulas_are_read() -> None:
    body = (
        f"<w:sdt><w:sdtContent>{_p('In a control.')}</w:sdtContent></w:sdt>"
        f"<w:p><w:hyperlink r:id='x'>{_r('A link')}</w:hyperlink>{_r(', page ')}"
        f"<w:fldSimple>{_r('7')}</w:fldSimple><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
        "<w:p><m:oMath><m:r><m:t>a=b</m:t></m:r></m:oMath></w:p>"
    )
    assert _lines(_extract(_package(body))) == ["In a control.", "A link, page 7", "a=b"]


def test_breaks_tabs_symbols_and_hidden_text() -> None:
    body = (
        f"<w:p>{_r('one')}<w:r><w:tab/></w:r>{_r('two')}<w:r><w:br/></w:r>{_r('co')}<w:r><w:noBreakHyphen/></w:r>"
        f"{_r('op')}<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        "<w:r><w:sym w:font='Wingdings' w:char='F0FC'/></w:r>"
        "<w:ruby><w:rt><w:r><w:t>kana</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>kanji</w:t></w:r></w:rubyBase></w:ruby></w:p>"
    )
    assert _lines(_extract(_package(body))) == ["one two", "co-op • kanji"]


def test_merged_cells_are_written_once() -> None:
    rows = [
        _tc(_p("A")) + _tc(_p("B")) + _tc(_p("C")),
        _tc(_p("wide"), '<w:gridSpan w:val="2"/>') + _tc(_p("tall"), '<w:vMerge w:val="restart"/>'),
        _tc(_p("1")) + _tc(_p("2")) + _tc(_p(""), "<w:vMerge/>"),
    ]
    assert _lines(_extract(_package(_table(*rows))))[2:] == ["| wide |  | tall |", "| 1 | 2 |  |"]


def test_header_rows_of_two_levels_are_joined_by_column() -> None:
    repeat = "<w:trPr><w:tblHeader/></w:trPr>"
    rows = [
        repeat + _tc(_p("Year")) + _tc(_p("Yield"), '<w:gridSpan w:val="2"/>'),
        repeat + _tc(_p("")) + _tc(_p("North")) + _tc(_p("South")),
        _tc(_p("2031")) + _tc(_p("4")) + _tc(_p("5")),
    ]
    assert _lines(_extract(_package(_table(*rows)))) == [
        "| Year | Yield North | Yield South |", "| --- | --- | --- |", "| 2031 | 4 | 5 |",
    ]  # fmt: skip


def test_table_around_a_table_only_lays_out() -> None:
    inner = _table(_tc(_p("K")) + _tc(_p("V")), _tc(_p("k")) + _tc(_p("v")))
    outer = _table(_tc(_p("Left")) + _tc(inner), _tc(_p("Right")) + _tc(_p("More")))
    extracted = _extract(_package(outer))
    assert "| K | V |\n| --- | --- |\n| k | v |" in extracted.text
    assert "Left" in extracted.text.splitlines()


def test_notes_and_comments_follow_their_paragraph() -> None:
    parts = {
        "footnotes": f"<w:footnotes NS><w:footnote w:type='separator' w:id='0'>{_p('---')}</w:footnote>"
        f"<w:footnote w:id='2'>{_p('See the map.')}</w:footnote></w:footnotes>",
        "endnotes": f"<w:endnotes NS><w:endnote w:id='3'>{_p('Printed 1988.')}</w:endnote></w:endnotes>",
        "comments": f"<w:comments NS><w:comment w:id='0' w:author='Ines'>{_p('Which one?')}</w:comment>"
        f"<w:comment w:id='9' w:author=''>{_p('Unanchored.')}</w:comment></w:comments>",
    }
    body = (
        f"<w:p>{_r('The old road')}<w:r><w:footnoteReference w:id='2'/><w:endnoteReference w:id='3'/>"
        f"<w:commentReference w:id='0'/></w:r></w:p>{_p('Next.')}"
    )
    assert _lines(_extract(_package(body, parts))) == [
        "The old road", "Footnote 1: See the map.", "Endnote 1: Printed 1988.",
        "Comment by Ines: Which one?", "Next.", "Comment: Unanchored.",
    ]  # fmt: skip


def test_headers_and_footers_are_read_once_with_their_tables() -> None:
    header = f"<w:hdr NS>{_table(_tc(_p('Document no. QX-31')) + _tc(_p('Version 2')))}</w:hdr>"
    parts = {
        "header1": header, "header2": header, "footer1": f"<w:ftr NS>{_p('Internal')}</w:ftr>",
        "footer2": f"<w:ftr NS>{_p('3')}</w:ftr>",
    }  # fmt: skip
    references = "".join(f'<w:headerReference r:id="header{number}"/>' for number in (1, 2, 1))
    references += '<w:footerReference r:id="footer1"/><w:footerReference r:id="footer2"/>'
    body = _p("Body.") + f"<w:sectPr>{references}</w:sectPr>"
    assert _lines(_extract(_package(body, parts))) == [
        "Document no. QX-31 | Version 2",
        "Body.",
        "Internal",
    ]


def test_strict_file_is_read() -> None:
    assert _extract(_package(_p("Strict text."), strict=True)).text == "Strict text."


def test_damaged_xml_is_read_as_far_as_it_goes_and_says_so() -> None:
    data = _package(_p("Readable.") + "<w:p><w:r><w:t>cut</w:p>")
    extracted = _extract(data)
    assert "Readable." in extracted.text
    assert "damaged" in extracted.warnings[0]


@pytest.mark.parametrize("data", [b"PK\x03\x04 cut off", b"", _package(_p("x"))[:400]])
def test_broken_zip_is_refused(data: bytes) -> None:
    with pytest.raises(ExtractionError) as raised:
        _extract(data)
    assert raised.value.fault is Fault.CORRUPT


def test_package_without_a_document_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("other.txt", "x")
    with pytest.raises(ExtractionError, match="document part is missing") as raised:
        _extract(out.getvalue())
    assert raised.value.fault is Fault.CORRUPT


def test_deep_nesting_ends_in_a_warning() -> None:
    body = "<w:sdt><w:sdtContent>" * 40 + _p("deep") + "</w:sdtContent></w:sdt>" * 40
    extracted = _extract(_package(_p("top") + body))
    assert extracted.text == "top"
    assert "nested" in extracted.warnings[0]
    assert (extracted.coverage.found, extracted.coverage.indexed) == (2, 1)
