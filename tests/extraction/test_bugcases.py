"""Faults that users of such products reported in public: the right outcome, case by case."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.extraction.base import BlockKind, Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.worker import extract_source
from tests.extraction.reading import check_blocks, row_of, rows, split_row, texts

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "bugcases"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not _FOLDER.exists(), reason="the bug cases are not beside the checkout"),
]


def _read(name: str) -> Extracted:
    path = _FOLDER / name
    with path.open("rb") as stream:
        extracted = extract_source(Source(stream, path.name, path.stat().st_size), Limits())
    check_blocks(extracted)
    return extracted


def _refusal(name: str) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        _read(name)
    return caught.value


def _flat(extracted: Extracted) -> str:
    return " ".join(extracted.text.split())


def _in_order(text: str, *parts: str) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


def _heading_path(extracted: Extracted, text: str) -> list[str]:
    """The open headings where the text stands."""
    path: list[tuple[int, str]] = []
    for block in extracted.blocks:
        shown = extracted.text[block.start : block.end]
        if block.kind is BlockKind.HEADING:
            path = [entry for entry in path if entry[0] < block.level] + [(block.level, shown)]
        elif text in shown:
            return [shown for _, shown in path]
    raise AssertionError(text)


def test_001_semicolons_and_decimal_commas() -> None:
    extracted = _read("001/parts.csv")
    assert row_of(extracted, "Kugellager") == {
        "Artikel": "Kugellager 6204",
        "Lager": "Halle 3",
        "Preis": "4,95",
        "Menge": "120",
    }
    assert "Artikel;Lager" not in extracted.text


def test_003_title_above_the_header() -> None:
    extracted = _read("003/visitors.csv")
    assert "Visitor survey, spring term" in texts(extracted, BlockKind.PARAGRAPH)
    assert row_of(extracted, "25-34") == {"Age group": "25-34", "Morning": "17", "Evening": "52"}
    assert row_of(extracted, "35-44") == {"Age group": "35-44", "Morning": "", "Evening": "38"}
    assert "unnamed" not in extracted.text.lower()
    assert "nan" not in extracted.text.lower()


def test_005_thematic_break_stays_a_line() -> None:
    parts = _read("005/rules.md").text.split("\n---\n")
    assert len(parts) == 3
    assert "Lost badges" in parts[0]
    assert "Visitors" in parts[0]
    assert parts[1].strip().startswith("Parking")


def test_010_long_table_has_header_on_each_row() -> None:
    extracted = _read("010/substances.xlsx")
    found = [block for block in extracted.blocks if block.kind is BlockKind.TABLE_ROW]
    assert len(found) == 120
    for block in found:
        assert split_row(block.table_header.split("\n")[0]) == [
            "Code",
            "Substance",
            "Max. temperature (C)",
            "Storage",
        ]
    assert extracted.text.count("Keep closed? Yes.") == 120


def test_011_all_rows_of_all_sheets() -> None:
    extracted = _read("011/tickets.xlsx")
    for month in ("JAN", "FEB", "MAR"):
        assert f"{month}-0000" in extracted.text
        assert f"{month}-1599" in extracted.text
    assert sum(1 for _ in rows(extracted)) == 4800


def test_013_comments_in_fences_are_no_headings() -> None:
    extracted = _read("013/setup.md")
    assert texts(extracted, BlockKind.HEADING) == ["Setup", "Linux", "macOS"]
    assert _heading_path(extracted, "apt-get install") == ["Setup", "Linux"]
    assert _heading_path(extracted, "brew install") == ["Setup", "macOS"]


def test_014_invisible_marks_before_headings() -> None:
    extracted = _read("014/notes.md")
    assert _heading_path(extracted, "Bring the keys.") == ["Opening", "Checklist"]
    assert "\ufeff" not in extracted.text


def test_015_text_before_the_first_heading() -> None:
    assert _read("015/memo.md").text.startswith(
        "Valid from 1 March; replaces the memo of last year."
    )


def test_018_text_box_once() -> None:
    text = _flat(_read("018/valve.docx"))
    assert text.count("Open valve 1") == 2
    assert text.count("Wait two minutes") == 1
    assert text.count("Record the pressure") == 1
    assert _in_order(text, "Start-up", "Wait two minutes", "Record the pressure", "End of sheet")


def test_020_table_in_a_list_entry() -> None:
    extracted = _read("020/steps.html")
    row = row_of(extracted, "Copper")
    assert row["Metal"] == "Copper"
    assert row["Torque"].startswith("12 Nm")
    assert texts(extracted, BlockKind.LIST_ITEM) == [
        "1. Prepare the plate",
        "2. Tighten the screws",
        "3. Clean up",
    ]
    assert _in_order(
        extracted.text, "Prepare the plate", "Copper", "Steel", "Tighten the screws", "Clean up"
    )


def test_023_table_in_the_page_header() -> None:
    extracted = _read("023/ctrl.docx")
    for part in ("Document no. QX-31", "Valid until", "31 May 2031", "Body text."):
        assert part in _flat(extracted)
    assert _flat(extracted).count("Document no. QX-31") == 1


def test_025_pipes_and_line_breaks_in_cells() -> None:
    extracted = _read("025/rules.csv")
    assert row_of(extracted, "allow") == {
        "rule": "allow",
        "pattern": "a|b|c",
        "note": "first line second line",
    }
    assert all(len(row) == 3 for row in rows(extracted))


def test_026_title_cell_is_no_header() -> None:
    extracted = _read("026/harvest.xlsx")
    assert row_of(extracted, "River field") == {
        "Plot": "River field",
        "Crop": "Oats",
        "Tonnes": "12.5",
    }
    assert "HARVEST DIARY" in extracted.text
    for part in ("Unnamed", "NaN", "nan", "None"):
        assert part not in extracted.text


@pytest.mark.parametrize("name", ["codes.csv", "codes.xlsx"])
def test_027_literal_na_and_null(name: str) -> None:
    extracted = _read(f"027/{name}")
    namibia = row_of(extracted, "Namibia")
    assert (namibia["Region code"], namibia["State"]) == ("NA", "NULL")
    bread = row_of(extracted, "nan bread")
    assert (bread["Country"], bread["State"]) == ("n/a", "None")
    assert "NaN" not in extracted.text


def test_030_grouped_shapes_tables_and_notes() -> None:
    text = _flat(_read("030/quarry.pptx"))
    for part in (
        "Quarry report",
        "Larch Hill",
        "310 t",
        "Blasting only on Thursdays",
        "Siren: three long tones",
        "Mention the new dust screens.",
    ):
        assert part in text
    assert "ThursdaysSiren" not in text


def test_031_mail_of_html_only() -> None:
    extracted = _read("031/alert.eml")
    text = _flat(extracted)
    assert extracted.title == "Daily digest"
    for part in ("Two new tenders match", "Tender 91-C, closes 17 June", "Daily digest"):
        assert part in text
    for part in ("color:red", "<li>", "iVBORw0KGgo"):
        assert part not in text


def test_037_signs_and_list_entries_in_word() -> None:
    extracted = _read("037/terms.docx")
    assert "Terms & Conditions" in extracted.text
    assert "R&D <beta>" in extracted.text
    assert "&amp;" not in extracted.text
    lines = [line.strip(" -*0123456789.") for line in extracted.text.split("\n")]
    for part in ("Connect the cable", "Wait for the lamp", "Open the cover"):
        assert part in lines


def test_039_workbook_is_not_empty() -> None:
    extracted = _read("039/fleet.xlsx")
    assert any("ZX-319" in line and "2027-12-15" in line for line in extracted.text.split("\n"))
    assert "Fleet" in extracted.text
    assert "Night pool" in extracted.text


def test_040_file_without_ending() -> None:
    assert _read("040/README").text == "Plain text without a file ending: yellow folder."
    refusal = _refusal("040/blob")
    assert refusal.fault is Fault.UNSUPPORTED
    assert refusal.message.startswith("blob holds binary data")


@pytest.mark.parametrize("name", ["log.txt", "logbe.txt"])
def test_041_utf16_with_mark(name: str) -> None:
    text = _read(f"041/{name}").text
    assert "Job 17 finished: 3 pages" in text
    assert "Größe geprüft" in text
    assert "\x00" not in text


def test_042_one_odd_byte() -> None:
    assert "5 ¢ per sheet" in _read("042/prices.org").text
    assert "He said “wait” – twice" in _read("042/quotes.md").text
    assert "All fine ✓" in _read("042/ok.md").text
    broken = _read("042/broken.md")
    assert "before the bad byte café" in broken.text
    assert "after the bad byte" in broken.text
    assert broken.warnings == ("1 character is not valid UTF-8 and shown as \ufffd.",)


def test_044_archive_is_refused_by_name() -> None:
    refusal = _refusal("044/keys.zip")
    assert refusal.fault is Fault.UNSUPPORTED
    assert refusal.message == "keys.zip is a zip archive. Unpack it and upload the files inside."
