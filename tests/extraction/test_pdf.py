"""PDF files: hand-written pages in, text with page numbers out."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pypdf
import pytest
from pypdf.annotations import Text

from knowledge.extraction.base import BlockKind, Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.pdf import PdfExtractor


def _pdf(*contents: str, info: str = "", page: str = "", extra: Sequence[str] = ()) -> bytes:
    """A PDF with a page for each content stream; object 3 is Helvetica, extras start at object 4."""
    count = len(contents)
    first = 4 + len(extra)
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        *extra,
    ]
    for index, content in enumerate(contents):
        objects += [
            (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
                f"/Resources << /Font << /F1 3 0 R >> >> /Contents {first + 2 * index + 1} 0 R {page} >>"
            ),
            f"<< /Length {len(content.encode('cp1252'))} >>\nstream\n{content}\nendstream",
        ]
    body, offsets = "%PDF-1.7\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body.encode("cp1252")))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    start = len(body.encode("cp1252"))
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    body += "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    body += (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {info} >>\nstartxref\n{start}\n%%EOF\n"
    )
    return body.encode("cp1252")


def _lines(
    *lines: str, size: float = 12, top: float = 720, pitch: float = 14, left: float = 72
) -> str:
    shown = "".join(f"({line}) Tj T*\n" for line in lines)
    return f"BT /F1 {size} Tf {pitch} TL {left} {top} Td\n{shown}ET\n"


def _extract(data: bytes, limits: Limits | None = None) -> Extracted:
    return PdfExtractor().extract(
        Source(io.BytesIO(data), "case.pdf", len(data)), limits or Limits()
    )


def _texts(extracted: Extracted) -> list[str]:
    return [extracted.text[block.start : block.end] for block in extracted.blocks]


def _rewritten(
    data: bytes, *, user: str = "", owner: str | None = None, algorithm: str = "AES-256"
) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    if owner is not None:
        writer.encrypt(user, owner, algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


PLAIN = _pdf(_lines("The mill stands by the river."), _lines("It was built of larch."))


def test_pages_are_numbered_and_counted() -> None:
    extracted = _extract(PLAIN)
    assert _texts(extracted) == ["The mill stands by the river.", "It was built of larch."]
    assert [block.page for block in extracted.blocks] == [1, 2]
    assert (extracted.coverage.unit, extracted.coverage.found, extracted.coverage.indexed) == (
        "pages",
        2,
        2,
    )


def test_lines_are_joined_and_gaps_split_paragraphs() -> None:
    content = _lines(
        "Grain was brought by boat and ground within the day,",
        "whatever the weather was, from April until the first",
        "frost.",
    ) + _lines(
        "In winter the wheel was locked and the millers made", "barrels from oak and ash.", top=640
    )
    assert _texts(_extract(_pdf(content))) == [
        (
            "Grain was brought by boat and ground within the day, whatever the weather was, from April "
            "until the first frost."
        ),
        "In winter the wheel was locked and the millers made barrels from oak and ash.",
    ]


def test_hyphen_at_line_end_is_joined_unless_the_word_has_one() -> None:
    content = _lines(
        "The co-operative measures the tem-",
        "perature of the store, and the co-",
        "operative writes it down in its log-",
        "Book every day.",
    )
    text = _extract(_pdf(content)).text
    assert "temperature" in text
    assert text.count("co-operative") == 2
    assert "log-Book" in text


def test_larger_type_is_a_heading() -> None:
    content = (
        _lines("Water rights", size=22, top=740)
        + _lines("The weir", size=16, top=700)
        + _lines(
            "The weir belongs to both villages and is repaired by turns.",
            "Each year in May.",
            top=660,
        )
    )
    extracted = _extract(_pdf(content))
    assert [(block.kind, block.level) for block in extracted.blocks] == [
        (BlockKind.HEADING, 1),
        (BlockKind.HEADING, 2),
        (BlockKind.PARAGRAPH, 0),
    ]


def test_bookmark_makes_a_heading_of_its_level() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(PLAIN))
    parent = writer.add_outline_item(title="Part one", page_number=0)
    writer.add_outline_item(title="It was built of larch.", page_number=1, parent=parent)
    out = io.BytesIO()
    writer.write(out)
    last = _extract(out.getvalue()).blocks[-1]
    assert (last.kind, last.level, last.page) == (BlockKind.HEADING, 2, 2)


def test_letters_drawn_twice_are_read_once() -> None:
    doubled = "".join(
        f"1 0 0 1 {72 + left + shift} 700 Tm ({letter}) Tj\n"
        for letter, left in zip("BOLD", (0, 8, 17.3, 24), strict=True)
        for shift in (0, 0.4)
    )
    assert _extract(_pdf(f"BT /F1 12 Tf\n{doubled}ET")).text == "BOLD"


def test_shadow_of_a_line_is_dropped_but_a_repeated_line_stays() -> None:
    content = _lines("Open the valve", top=700) + _lines("Open the valve", top=699.4, left=72.5)
    content += _lines("Open the valve", top=600)
    assert _extract(_pdf(content)).text.count("Open the valve") == 2


def test_spaced_letters_make_words() -> None:
    assert _extract(_pdf(f"2 Tc\n{_lines('Spaced')}")).text == "Spaced"


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_rotated_page_reads_as_shown(rotation: int) -> None:
    matrix = {90: "0 1 -1 0 300 100", 180: "-1 0 0 -1 500 500", 270: "0 -1 1 0 300 700"}[rotation]
    content = f"BT /F1 12 Tf 14 TL {matrix} Tm (Turned text is) Tj T* (still in lines.) Tj ET"
    text = _extract(_pdf(content, page=f"/Rotate {rotation}")).text
    assert text.split() == ["Turned", "text", "is", "still", "in", "lines."]


def test_ligatures_become_letters() -> None:
    cmap = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> "
        "endcodespacerange 2 beginbfchar <41> <FB01> <42> <FB04> endbfchar endcmap end"
    )
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 5 0 R >>"
    stream = f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream"
    page = "/Resources << /Font << /F1 4 0 R >> >>"
    data = _pdf(_lines("AB"), page=page, extra=[font, stream]).replace(
        b"/Resources << /Font << /F1 3 0 R >> >>", b" " * 40
    )
    assert _extract(_damaged_xref(data)).text == "fiffl"


def test_bullets_become_list_items() -> None:
    extracted = _extract(
        _pdf(_lines("\x95 Bring a lamp", "\x95 Sign the book").replace("\x95", "\\225"))
    )
    assert [block.kind for block in extracted.blocks] == [BlockKind.LIST_ITEM, BlockKind.LIST_ITEM]
    assert extracted.text == "- Bring a lamp\n- Sign the book"


def test_facts_of_the_document_become_title_and_metadata() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(PLAIN))
    writer.add_metadata(
        {
            "/Title": "Mill records",
            "/Author": "A. Brandt",
            "/CreationDate": "D:20240305101500+01'00'",
        }
    )
    out = io.BytesIO()
    writer.write(out)
    extracted = _extract(out.getvalue())
    assert extracted.title == "Mill records"
    assert extracted.metadata["author"] == "A. Brandt"
    assert extracted.metadata["created_at"] == "2024-03-05T10:15:00+01:00"


def test_wrong_date_in_the_facts_is_left_out() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(PLAIN))
    writer.add_metadata({"/Title": "Mill records", "/CreationDate": "last summer"})
    out = io.BytesIO()
    writer.write(out)
    extracted = _extract(out.getvalue())
    assert extracted.title == "Mill records"
    assert "created_at" not in extracted.metadata


def test_comment_follows_its_page() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(PLAIN))
    writer.add_annotation(
        0, Text(rect=(50, 550, 200, 650), text="Check the year.", title_bar="Ines")
    )
    out = io.BytesIO()
    writer.write(out)
    extracted = _extract(out.getvalue())
    assert _texts(extracted)[1] == "Comment by Ines: Check the year."
    assert extracted.blocks[1].page == 1


def test_filled_form_fields_are_named() -> None:
    field = (
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (Village) /V (Larch Hill) /Rect [0 0 9 9] >>"
    )
    box = (
        "<< /Type /Annot /Subtype /Widget /FT /Btn /T (Member) /V /Yes /AS /Yes /Rect [0 0 9 9] >>"
    )
    empty = (
        "<< /Type /Annot /Subtype /Widget /FT /Btn /T (Guest) /V /Off /AS /Off /Rect [0 0 9 9] >>"
    )
    data = _pdf(
        _lines("Application"), page="/Annots [4 0 R 5 0 R 6 0 R]", extra=[field, box, empty]
    )
    assert _texts(_extract(data)) == ["Application", "Village: Larch Hill", "Member: yes"]


def test_attachments_are_named_in_a_warning() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(PLAIN))
    writer.add_attachment("ledger.csv", b"a,b")
    out = io.BytesIO()
    writer.write(out)
    assert any("ledger.csv" in warning for warning in _extract(out.getvalue()).warnings)


def test_pages_without_text_are_named() -> None:
    empty = "0 0 100 100 re f"
    extracted = _extract(_pdf(_lines("Cover"), empty, empty, empty, _lines("Back"), empty))
    assert (extracted.coverage.found, extracted.coverage.indexed) == (6, 2)
    assert extracted.warnings == (
        "Pages 2-4, 6 have no text layer (scanned?): text in images is not read, OCR is not available.",
    )


def test_file_without_any_text_is_returned_empty_with_the_reason() -> None:
    extracted = _extract(_pdf("0 0 100 100 re f"))
    assert extracted.text == ""
    assert extracted.coverage.indexed == 0
    assert "Page 1 has no text layer" in extracted.warnings[0]


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_owner_password_alone_does_not_lock(algorithm: str) -> None:
    data = _rewritten(PLAIN, owner="only-the-owner", algorithm=algorithm)
    assert "built of larch" in _extract(data).text


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_user_password_is_refused_with_what_to_do(algorithm: str) -> None:
    data = _rewritten(PLAIN, user="open-sesame", owner="owner", algorithm=algorithm)
    with pytest.raises(ExtractionError, match=r"Remove the password and upload it again") as raised:
        _extract(data)
    assert raised.value.fault is Fault.ENCRYPTED


def _damaged_xref(data: bytes) -> bytes:
    head, _, tail = data.rpartition(b"startxref\n")
    return head + b"startxref\n7\n%%EOF\n" + tail[:0]


@pytest.mark.parametrize(
    "data",
    [
        _damaged_xref(PLAIN),
        b"junk before\n" + PLAIN,
        PLAIN.replace(b"00000 n", b"00001 n"),
        PLAIN[:-20],
    ],
    ids=["startxref", "leading bytes", "xref", "cut end"],
)
def test_slightly_broken_file_is_still_read(data: bytes) -> None:
    assert "The mill stands by the river." in _extract(data).text


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.4\n" + bytes(range(256)) * 20, b""])
def test_broken_file_is_refused(data: bytes) -> None:
    with pytest.raises(ExtractionError, match=r"case\.pdf is damaged") as raised:
        _extract(data)
    assert raised.value.fault is Fault.CORRUPT


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(ExtractionError, match="2 pages; at most 1") as raised:
        _extract(PLAIN, Limits(max_pages=1))
    assert raised.value.fault is Fault.TOO_LARGE


def test_too_much_text_is_refused() -> None:
    with pytest.raises(ExtractionError) as raised:
        _extract(PLAIN, Limits(max_text_chars=20))
    assert raised.value.fault is Fault.TOO_LARGE


def test_offsets_hold() -> None:
    extracted = _extract(PLAIN)
    assert _texts(extracted) == extracted.text.split("\n\n")
