"""PowerPoint files: every box of every slide, in reading order, with its slide number."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from knowledge.extraction.base import BlockKind, Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.pptx import PptxExtractor

TITLE_ONLY, TITLE_AND_BODY, BLANK = 5, 1, 6
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _extract(data: bytes, limits: Limits | None = None) -> Extracted:
    return PptxExtractor().extract(
        Source(io.BytesIO(data), "case.pptx", len(data)), limits or Limits()
    )


def _saved(show: pptx.presentation.Presentation) -> bytes:
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def _lines(extracted: Extracted) -> list[str]:
    return [line for line in extracted.text.splitlines() if line]


def _changed(data: bytes, change: Callable[[str, bytes], bytes | None], **added: str) -> bytes:
    """The package with each part passed through `change` (None drops it), and parts added."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
        for name, text in added.items():
            new.writestr(name.replace("__", "/") + ".xml", text)
    return out.getvalue()


def _box(slide: pptx.slide.Slide, text: str, left: float, top: float) -> None:
    slide.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(1)).text_frame.text = text


def _show(*titles: str) -> pptx.presentation.Presentation:
    show = pptx.Presentation()
    for title in titles:
        show.slides.add_slide(show.slide_layouts[TITLE_ONLY]).shapes.title.text = title
    return show


def test_title_is_a_heading_and_the_slide_number_is_on_every_block() -> None:
    show = _show("Mine report", "Outlook")
    _box(show.slides[1], "More rain is expected.", 1, 3)
    extracted = _extract(_saved(show))
    assert [(block.kind, block.level, block.page) for block in extracted.blocks] == [
        (BlockKind.HEADING, 2, 1), (BlockKind.HEADING, 2, 2), (BlockKind.PARAGRAPH, 0, 2),
    ]  # fmt: skip
    assert (extracted.coverage.unit, extracted.coverage.found, extracted.coverage.indexed) == (
        "slides",
        2,
        2,
    )


def test_boxes_are_read_by_rows_and_never_glued() -> None:
    show = _show("Layout")
    for text, left, top in (("d", 5, 5), ("b", 5, 2.1), ("c", 1, 5), ("a", 1, 2)):
        _box(show.slides[0], text, left, top)
    assert _extract(_saved(show)).text == "Layout\n\na\n\nb\n\nc\n\nd"


def test_body_points_are_list_items_with_their_depth() -> None:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[TITLE_AND_BODY])
    slide.shapes.title.text = "Rules"
    frame = slide.placeholders[1].text_frame
    frame.text = "Wear a helmet"
    inner = frame.add_paragraph()
    inner.text, inner.level = "Also in the office", 1
    assert _lines(_extract(_saved(show))) == ["Rules", "- Wear a helmet", "  - Also in the office"]


def test_nested_groups_are_read() -> None:
    show = _show("Groups")
    outer = show.slides[0].shapes.add_group_shape()
    inner = outer.shapes.add_group_shape()
    for group, text in ((outer, "outer text"), (inner, "inner text")):
        box = group.shapes.add_textbox(Inches(1), Inches(3), Inches(1), Inches(1))
        box.text_frame.text = text
    assert set(_lines(_extract(_saved(show)))) == {"Groups", "outer text", "inner text"}


def test_table_has_its_header_and_merged_cells_once() -> None:
    show = _show("Pits")
    shape = show.slides[0].shapes.add_table(3, 2, Inches(1), Inches(2), Inches(4), Inches(2))
    for index, text in enumerate(("Pit", "Tonnes", "Larch", "310", "closed", "")):
        shape.table.cell(index // 2, index % 2).text = text
    shape.table.cell(2, 0).merge(shape.table.cell(2, 1))
    extracted = _extract(_saved(show))
    assert _lines(extracted)[1:] == [
        "| Pit | Tonnes |",
        "| --- | --- |",
        "| Larch | 310 |",
        "| closed |  |",
    ]
    assert extracted.blocks[-1].table_header.startswith("| Pit | Tonnes |")


def test_notes_are_marked() -> None:
    show = _show("Talk")
    show.slides[0].notes_slide.notes_text_frame.text = "Speak slowly."
    assert _lines(_extract(_saved(show))) == ["Talk", "Notes: Speak slowly."]


def test_chart_gives_title_series_and_categories() -> None:
    show = _show("Chart")
    chart_data: Any = CategoryChartData  # typed in part only
    data = chart_data()
    data.categories = ["May", "June"]
    data.add_series("Rain", (4.3, 12))
    frame = show.slides[0].shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(4), Inches(3), data
    )
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = "Rain in mm"
    assert _lines(_extract(_saved(show)))[1:] == ["Rain in mm", "Rain: May = 4.3; June = 12"]


def test_diagram_entries_are_read() -> None:
    frame = (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="9" name="x"/><p:cNvGraphicFramePr/><p:nvPr/>'
        '</p:nvGraphicFramePr><a:graphic><a:graphicData uri="d">'
        '<dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
        f'xmlns:r="{OFFICE}" r:dm="rIdData"/></a:graphicData></a:graphic></p:graphicFrame></p:spTree>'
    )
    relation = f'<Relationship Id="rIdData" Type="{OFFICE}/diagramData" Target="../diagrams/data1.xml"/></Relationships>'
    diagram = (
        '<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst>'
        "<dgm:pt><dgm:t><a:p><a:r><a:t>Foreman</a:t></a:r></a:p></dgm:t></dgm:pt>"
        "<dgm:pt><dgm:t><a:p><a:r><a:t>Crew</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
    )

    def change(name: str, content: bytes) -> bytes:
        if name == "ppt/slides/slide1.xml":
            return content.replace(b"</p:spTree>", frame.encode())
        if name == "ppt/slides/_rels/slide1.xml.rels":
            return content.replace(b"</Relationships>", relation.encode())
        return content

    data = _changed(_saved(_show("Staff")), change, ppt__diagrams__data1=diagram)
    assert _lines(_extract(data)) == ["Staff", "Foreman", "Crew"]


def test_comments_name_their_author() -> None:
    relation = f'<Relationship Id="rIdC" Type="{OFFICE}/comments" Target="../comments/comment1.xml"/></Relationships>'
    main = f'<Relationship Id="rIdA" Type="{OFFICE}/commentAuthors" Target="commentAuthors.xml"/></Relationships>'
    namespace = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'

    def change(name: str, content: bytes) -> bytes:
        if name == "ppt/slides/_rels/slide1.xml.rels":
            return content.replace(b"</Relationships>", relation.encode())
        if name == "ppt/_rels/presentation.xml.rels":
            return content.replace(b"</Relationships>", main.encode())
        return content

    data = _changed(
        _saved(_show("Draft")),
        change,
        ppt__comments__comment1=f'<p:cmLst {namespace}><p:cm authorId="1"><p:text>Too long.</p:text></p:cm></p:cmLst>',
        ppt__commentAuthors=f'<p:cmAuthorLst {namespace}><p:cmAuthor id="1" name="Ines"/></p:cmAuthorLst>',
    )
    assert _lines(_extract(data)) == ["Draft", "Comment by Ines: Too long."]


def test_slide_without_title_is_headed_by_its_number_and_an_empty_one_is_not() -> None:
    show = pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[BLANK])
    _box(show.slides.add_slide(show.slide_layouts[BLANK]), "Only a box", 1, 1)
    extracted = _extract(_saved(show))
    assert _lines(extracted) == ["Slide 2", "Only a box"]
    assert (extracted.coverage.found, extracted.coverage.indexed) == (2, 1)


def test_hidden_slide_is_marked() -> None:
    def change(name: str, content: bytes) -> bytes:
        return content.replace(b"<p:sld ", b'<p:sld show="0" ') if "slide1.xml" in name else content

    assert _extract(_changed(_saved(_show("Spare")), change)).text == "Spare (hidden)"


def test_damaged_slide_is_left_out_with_a_warning() -> None:
    def change(name: str, content: bytes) -> bytes:
        return b"" if name == "ppt/slides/slide1.xml" else content

    extracted = _extract(_changed(_saved(_show("Lost", "Kept")), change))
    assert extracted.text == "Kept"
    assert "Slide 1 is damaged and was left out." in extracted.warnings
    assert (extracted.coverage.found, extracted.coverage.indexed) == (2, 1)


def test_missing_content_types_and_lost_slide_list_are_tolerated() -> None:
    def change(name: str, content: bytes) -> bytes | None:
        if name == "ppt/presentation.xml":
            return content.replace(b"<p:sldId ", b"<p:sldGone ")
        return None if name == "[Content_Types].xml" else content

    assert _lines(_extract(_changed(_saved(_show("One", "Two")), change))) == ["One", "Two"]


def test_strict_file_is_read() -> None:
    def change(_name: str, content: bytes) -> bytes:
        for family in (b"presentationml", b"drawingml"):
            content = content.replace(
                b"http://schemas.openxmlformats.org/" + family + b"/2006/",
                b"http://purl.oclc.org/ooxml/" + family + b"/",
            )
        return content.replace(
            OFFICE.encode(), b"http://purl.oclc.org/ooxml/officeDocument/relationships"
        )

    assert _extract(_changed(_saved(_show("Strict")), change)).text == "Strict"


def test_properties_become_title_and_author() -> None:
    show = _show("x")
    show.core_properties.title, show.core_properties.author = "Mine report", "J. Moreau"
    extracted = _extract(_saved(show))
    assert (extracted.title, extracted.metadata["author"]) == ("Mine report", "J. Moreau")


def test_too_many_slides_are_refused() -> None:
    with pytest.raises(ExtractionError, match="2 slides; at most 1") as raised:
        _extract(_saved(_show("a", "b")), Limits(max_pages=1))
    assert raised.value.fault is Fault.TOO_LARGE


def test_truncated_file_is_refused() -> None:
    with pytest.raises(ExtractionError) as raised:
        _extract(_saved(_show("a"))[:2000])
    assert raised.value.fault is Fault.CORRUPT
