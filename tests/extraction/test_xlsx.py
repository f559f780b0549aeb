"""Excel workbooks: values as shown, tables with their header, every sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.styles import Font

from knowledge.extraction.base import BlockKind, Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.xlsx import XlsxExtractor
from knowledge.extraction.xlsx.cells import column_of, unescape
from knowledge.extraction.xlsx.formats import parse_format, show_number

SHEET = "xl/worksheets/sheet1.xml"


def _extract(data: bytes, limits: Limits | None = None) -> Extracted:
    return XlsxExtractor().extract(
        Source(io.BytesIO(data), "case.xlsx", len(data)), limits or Limits()
    )


def _saved(book: openpyxl.Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _book(*rows: list[object], bold: tuple[int, ...] = ()) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for number, row in enumerate(rows, start=1):
        for column, value in enumerate(row, start=1):
            if value is not None:
                book.active.cell(number, column, value).font = Font(bold=number in bold)
    return book


def _changed(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


def _lines(extracted: Extracted) -> list[str]:
    """All lines but the rules under table headers."""
    return [line for line in extracted.text.splitlines() if line and not line.startswith("| ---")]


def _read(*rows: list[object], bold: tuple[int, ...] = ()) -> list[str]:
    return _lines(_extract(_saved(_book(*rows, bold=bold))))[1:]


def test_rows_carry_sheet_row_number_and_header() -> None:
    extracted = _extract(_saved(_book(["Plate", "Driver"], ["ZX-1", "Ana"], ["ZX-2", "Bo"])))
    assert _lines(extracted) == ["Data", "| Plate | Driver |", "| ZX-1 | Ana |", "| ZX-2 | Bo |"]
    last = extracted.blocks[-1]
    assert (last.kind, last.sheet, last.row) == (BlockKind.TABLE_ROW, "Data", 3)
    assert last.table_header == "| Plate | Driver |\n| --- | --- |"
    assert (extracted.coverage.unit, extracted.coverage.found, extracted.coverage.indexed) == (
        "rows",
        3,
        3,
    )


def test_every_sheet_is_read_and_hidden_ones_are_marked() -> None:
    book = _book(["A", "B"], [1, 2])
    hidden = book.create_sheet("Old")
    hidden.append(["C", "D"])
    hidden.append([3, 4])
    hidden.sheet_state = "hidden"
    book.create_sheet("Empty")
    extracted = _extract(_saved(book))
    headings = [block for block in extracted.blocks if block.kind is BlockKind.HEADING]
    assert [extracted.text[block.start : block.end] for block in headings] == [
        "Data",
        "Old (hidden)",
    ]
    assert {block.level for block in headings} == {2}
    assert extracted.coverage.found == 4


def test_titles_above_the_header_are_paragraphs() -> None:
    rows: list[list[object]] = [
        ["HARVEST DIARY"],
        [],
        ["Plot", "Crop", "Tonnes"],
        ["West", "Barley", 31],
        ["River", "Oats", 12.5],
    ]
    assert _read(*rows) == [
        "HARVEST DIARY", "| Plot | Crop | Tonnes |", "| West | Barley | 31 |", "| River | Oats | 12.5 |",
    ]  # fmt: skip


def test_texts_that_look_like_nothing_are_kept() -> None:
    rows: list[list[object]] = [
        ["Code", "Country", "State"],
        ["NA", "Namibia", "NULL"],
        ["EU", "n/a", "None"],
    ]
    assert _read(*rows) == [
        "| Code | Country | State |",
        "| NA | Namibia | NULL |",
        "| EU | n/a | None |",
    ]


def test_two_tables_in_a_sheet_have_their_own_headers() -> None:
    rows: list[list[object]] = [["Name", "Age"], ["Ana", 4], [], ["Town", "Height"], ["Oslo", 23]]
    extracted = _extract(_saved(_book(*rows, bold=(1, 4))))
    assert extracted.blocks[-1].table_header.startswith("| Town | Height |")


def test_empty_row_within_a_table_does_not_end_it() -> None:
    rows: list[list[object]] = [
        ["Name", "Town"],
        ["Ana", "Oslo"],
        ["Bo", "Rome"],
        [],
        ["Cy", "Bern"],
        ["Di", "Wien"],
    ]
    extracted = _extract(_saved(_book(*rows)))
    assert [block.kind for block in extracted.blocks].count(BlockKind.TABLE_HEADER) == 1
    assert extracted.blocks[-1].table_header.startswith("| Name | Town |")


def test_header_parted_from_its_data_by_an_empty_row_is_found() -> None:
    assert _read([None, "Sales", "Profit"], [], ["North", 5, 1], ["South", 6, 2]) == [
        "|  | Sales | Profit |", "| North | 5 | 1 |", "| South | 6 | 2 |",
    ]  # fmt: skip


def test_merged_header_of_two_rows_is_joined_by_column() -> None:
    book = _book(["Year", "Yield", None], [None, "North", "South"], [2031, 4, 5], [2032, 6, 7])
    book.active.merge_cells("A1:A2")
    book.active.merge_cells("B1:C1")
    assert _lines(_extract(_saved(book)))[1:] == [
        "| Year | Yield North | Yield South |", "| 2031 | 4 | 5 |", "| 2032 | 6 | 7 |",
    ]  # fmt: skip


def test_merged_value_is_written_once() -> None:
    book = _book(["Area", "Plot"], ["West", "a"], [None, "b"])
    book.active.merge_cells("A2:A3")
    assert _lines(_extract(_saved(book)))[1:] == ["| Area | Plot |", "| West | a |", "|  | b |"]


def test_table_without_names_gets_no_row_as_header() -> None:
    extracted = _extract(_saved(_book([1, 2], [3, 4])))
    assert [block.row for block in extracted.blocks if block.kind is BlockKind.TABLE_ROW] == [1, 2]


def test_running_text_in_one_column_is_paragraphs() -> None:
    assert _read(["Please read this first."], ["Then the rest."]) == [
        "Please read this first.",
        "Then the rest.",
    ]


def test_list_in_one_column_is_a_table() -> None:
    rows: list[list[object]] = [["Plate"]]
    rows += [[f"ZX-{number}"] for number in range(5)]
    extracted = _extract(_saved(_book(*rows)))
    assert extracted.blocks[-1].table_header.startswith("| Plate |")
    assert extracted.blocks[-1].row == 6


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (date(2027, 12, 15), "dd/mm/yyyy", "2027-12-15"),
        (datetime.fromisoformat("2027-12-15T06:30"), "d-mmm-yy h:mm", "2027-12-15 06:30"),
        (time(6, 15), "h:mm", "06:15"),
        (timedelta(hours=30, minutes=5), "[h]:mm:ss", "30:05"),
        (0.025, "0.00%", "2.5%"),
        (0.5, "0%", "50%"),
        (42.0, "General", "42"),
        (0.1 + 0.2, "General", "0.3"),
        (12.5, "0.00", "12.50"),
        (1599.99, '"$"#,##0.00', "$1599.99"),
        (-5, '#,##0 [$€-407];-#,##0 [$€-407]', "-5 €"),
        (7, '0" kg"', "7 kg"),
        (1234, "00000", "01234"),
        (2500000, "0.0,,", "2.5"),
        (198356388, "0.00E+00", "198356388"),
        (2.5, "# ?/?", "2.5"),
        (19.99, '0\\ "and"\\ .00\\ "cents"', "19.99"),
        (True, "General", "TRUE"),
        ("00123", "@", "00123"),
    ],
)  # fmt: skip
def test_values_are_shown_as_a_reader_sees_them(value: object, code: str, shown: str) -> None:
    book = _book(["Name", "Value"], ["x", value], ["y", value])
    for row in (2, 3):
        book.active.cell(row, 2).number_format = code
    assert _lines(_extract(_saved(book)))[2] == f"| x | {shown} |"


def test_dates_count_from_1904_where_the_workbook_says_so() -> None:
    assert show_number("1", parse_format("yyyy-mm-dd", 0), from_1904=True) == "1904-01-02"
    assert show_number("44197", parse_format(None, 14), from_1904=False) == "2021-01-01"
    assert show_number("44197", parse_format(None, 31), from_1904=False) == "2021-01-01"


def test_date_out_of_range_stays_a_number() -> None:
    assert (
        show_number("99999999999", parse_format("yyyy-mm-dd", 0), from_1904=False) == "99999999999"
    )


def test_results_of_formulas_are_read_and_missing_ones_are_counted() -> None:
    def with_result(name: str, content: bytes) -> bytes:
        return (
            content.replace(b"<f>B2*2</f><v></v>", b"<f>B2*2</f><v>62</v>")
            if name == SHEET
            else content
        )

    data = _saved(_book(["Name", "Half", "Whole"], ["x", 31, "=B2*2"], ["y", 32, "=B3*2"]))
    extracted = _extract(_changed(data, with_result))
    assert _lines(extracted)[2:] == ["| x | 31 | 62 |", "| y | 32 |  |"]
    assert extracted.warnings[0].startswith("1 formulas have no stored result")


def test_comments_are_read_with_their_cell() -> None:
    book = _book(["Name", "Age"], ["Ana", 4])
    book.active["B2"].comment = Comment("Ines:\nAsk again.", "Ines")
    assert _lines(_extract(_saved(book)))[-1] == "Comment on B2 by Ines: Ask again."


def test_reading_aids_are_not_part_of_a_name() -> None:
    shared = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>豊田</t>'
        '<rPh sb="0" eb="2"><t>トヨタ</t></rPh></si><si><r><t>本</t></r><r><t>田</t></r></si></sst>'
    )

    def change(_name: str, content: bytes) -> bytes:
        for index, letter in enumerate((b"a", b"b")):
            inline = b't="inlineStr"><is><t>' + letter + b"</t></is>"
            content = content.replace(inline, f't="s"><v>{index}</v>'.encode())
        return content

    data = _changed(_saved(_book(["a", "b"], [1, 2])), change)
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", shared)
    assert _lines(_extract(out.getvalue()))[1] == "| 豊田 | 本田 |"


def test_wrong_dimension_and_missing_positions_are_tolerated() -> None:
    def change(name: str, content: bytes) -> bytes:
        if name != SHEET:
            return content
        content = content.replace(b'<dimension ref="A1:B2"/>', b'<dimension ref="A1:A1"/>')
        for reference in (b' r="A1"', b' r="B1"', b' r="A2"', b' r="B2"', b' r="1"', b' r="2"'):
            content = content.replace(reference, b"")
        return content

    data = _changed(_saved(_book(["a", "b"], [1, 2])), change)
    assert _lines(_extract(data))[1:] == ["| a | b |", "| 1 | 2 |"]


def test_strict_workbook_is_read() -> None:
    def change(_name: str, content: bytes) -> bytes:
        content = content.replace(
            b"http://schemas.openxmlformats.org/spreadsheetml/2006/main",
            b"http://purl.oclc.org/ooxml/spreadsheetml/main",
        )
        return content.replace(
            b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
            b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        )

    data = _changed(_saved(_book(["a", "b"], [1, 2])), change)
    assert _lines(_extract(data)) == ["Data", "| a | b |", "| 1 | 2 |"]


def test_workbook_with_malformed_styles_is_read() -> None:
    def change(name: str, content: bytes) -> bytes:
        return b"<styleSheet><broken" if name == "xl/styles.xml" else content

    extracted = _extract(_changed(_saved(_book(["a", "b"], [1, 2])), change))
    assert _lines(extracted)[1:] == ["| a | b |", "| 1 | 2 |"]
    assert "xl/styles.xml" in extracted.warnings[0]


def test_sheet_cut_in_the_middle_keeps_what_can_be_read() -> None:
    def change(name: str, content: bytes) -> bytes:
        return (
            content[: content.index(b"<row", content.index(b"<row") + 1) + 10]
            if name == SHEET
            else content
        )

    extracted = _extract(_changed(_saved(_book(["a", "b"], [1, 2])), change))
    assert "damaged" in extracted.warnings[0]
    assert extracted.text == "Data\n\na b"


def test_limit_of_rows_holds_over_all_sheets() -> None:
    book = _book(["a", "b"], [1, 2])
    book.create_sheet("More").append([3, 4])
    with pytest.raises(ExtractionError, match="more than 2 rows") as raised:
        _extract(_saved(book), Limits(max_rows=2))
    assert raised.value.fault is Fault.TOO_LARGE


def test_rows_far_apart_do_not_make_empty_ones() -> None:
    book = _book(["a", "b"], [1, 2])
    book.active.cell(1_000_000, 2, "far")
    book.active.cell(3, 16_000, "wide")
    extracted = _extract(_saved(book))
    assert extracted.blocks[-1].row is None or extracted.blocks[-1].row == 1_000_000
    assert len(extracted.text) < 500


def test_empty_workbook_is_returned_empty() -> None:
    extracted = _extract(_saved(openpyxl.Workbook()))
    assert (extracted.text, extracted.coverage.found) == ("", 0)


def test_truncated_workbook_is_refused() -> None:
    with pytest.raises(ExtractionError) as raised:
        _extract(_saved(_book(["a"]))[:1500])
    assert raised.value.fault is Fault.CORRUPT


def test_column_letters_and_escapes() -> None:
    assert [column_of(reference) for reference in ("A1", "Z9", "AA1", "XFD1", "")] == [
        1,
        26,
        27,
        16384,
        0,
    ]
    assert unescape("a_x000D_b_x0041_") == "a\rbA"
