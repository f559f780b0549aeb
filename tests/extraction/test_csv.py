"""Delimited text → table rows."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import BlockKind, Coverage, ExtractionError, Fault, Limits
from tests.extraction.reading import block_of, read, row_of, rows, texts


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_any_delimiter(mark: str) -> None:
    data = "\n".join(mark.join(row) for row in (("a", "b", "c"), ("1", "x y", ""), ("2", "z", "w")))
    extracted = read("csv", data, "case.csv")
    assert list(rows(extracted)) == [
        {"a": "1", "b": "x y", "c": ""},
        {"a": "2", "b": "z", "c": "w"},
    ]
    assert extracted.coverage == Coverage("rows", 3, 3)


def test_decimal_commas_do_not_win_over_semicolons() -> None:
    data = "Artikel;Preis;Gewicht\nRad;4,95;1,5\nAchse;12,00;7,25\n"
    assert row_of(read("csv", data), "Achse") == {
        "Artikel": "Achse",
        "Preis": "12,00",
        "Gewicht": "7,25",
    }


def test_text_with_commas_in_a_tab_file() -> None:
    data = "id\tnote\n1\tone, two, three\n2\tfour, five, six\n"
    assert row_of(read("csv", data, "a.tsv"), "four")["note"] == "four, five, six"


def test_excel_states_the_delimiter_itself() -> None:
    extracted = read("csv", "sep=;\na;b\n1,5;2\n")
    assert list(rows(extracted)) == [{"a": "1,5", "b": "2"}]
    assert block_of(extracted, "1,5").row == 3


def test_titles_and_blank_rows_above_the_header() -> None:
    extracted = read("csv", "Report 2026,,\nInternal,,\n,,\nName,Room,Phone\nAnn,1,55\nBo,2,56\n")
    assert texts(extracted, BlockKind.PARAGRAPH) == ["Report 2026", "Internal"]
    assert row_of(extracted, "Bo") == {"Name": "Bo", "Room": "2", "Phone": "56"}


def test_rows_and_lines_are_counted_as_programs_show_them() -> None:
    extracted = read("csv", 'a,b\n1,"x\ny"\n\n2,z\n')
    assert (block_of(extracted, "x y").row, block_of(extracted, "x y").line) == (2, 2)
    assert (block_of(extracted, "z").row, block_of(extracted, "z").line) == (4, 5)


def test_cells_stay_as_written() -> None:
    extracted = read("csv", "k,v,w\n007,NA,1e5\nNULL,None,n/a\n")
    assert row_of(extracted, "007") == {"k": "007", "v": "NA", "w": "1e5"}
    assert row_of(extracted, "NULL") == {"k": "NULL", "v": "None", "w": "n/a"}


def test_file_without_a_header() -> None:
    extracted = read("csv", "1,Ann,3.5\n2,Bo,4.5\n")
    assert texts(extracted) == ["| 1 | Ann | 3.5 |", "| 2 | Bo | 4.5 |"]
    assert {block.table_header for block in extracted.blocks} == {""}


def test_years_are_column_names() -> None:
    extracted = read("csv", "Country,2024,2025\nPeru,5,6\nChad,7,8\n")
    assert row_of(extracted, "Chad") == {"Country": "Chad", "2024": "7", "2025": "8"}


def test_ragged_rows_lose_nothing() -> None:
    extracted = read("csv", "a,b\n1\n2,3,extra\n4,5\n")
    assert texts(extracted, BlockKind.TABLE_ROW) == [
        "| 1 |  |  |",
        "| 2 | 3 | extra |",
        "| 4 | 5 |  |",
    ]


def test_old_mac_line_ends() -> None:
    assert list(rows(read("csv", b"a,b\r1,2\r3,4\r"))) == [
        {"a": "1", "b": "2"},
        {"a": "3", "b": "4"},
    ]


def test_huge_field() -> None:
    assert row_of(read("csv", f"a,b\n1,{'x' * 300_000}\n"), "x")["b"] == "x" * 300_000


def test_quote_that_never_closes() -> None:
    lines = "\n".join(f"{number},row {number}" for number in range(500))
    extracted = read("csv", f'id,name\n1,"open\n{lines}\n')
    assert row_of(extracted, "row 499") == {"id": "499", "name": "row 499"}
    assert extracted.warnings == (
        "A quotation mark is never closed; quotation marks are read as plain signs.",
    )


def test_one_column() -> None:
    assert [*rows(read("csv", "city\nUlm\nBern\n"))] == [{"city": "Ulm"}, {"city": "Bern"}]


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(ExtractionError) as caught:
        read("csv", "a\n" * 11, "big.csv", Limits(max_rows=10))
    assert caught.value.fault is Fault.TOO_LARGE
    assert "big.csv has 11 rows; at most 10 are read" in caught.value.message
