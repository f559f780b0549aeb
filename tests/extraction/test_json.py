"""JSON and JSON Lines → readable text."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import BlockKind, Coverage, ExtractionError, Fault, Limits
from tests.extraction.reading import block_of, read, row_of, texts


def test_objects_read_as_paths_and_values() -> None:
    extracted = read(
        "json",
        '{"title": "Server", "net": {"host": "db1", "port": 5432, "tls": true, "proxy": null},'
        ' "tags": ["a", "b"], "rate": 1.10}',
    )
    assert texts(extracted) == [
        "title: Server",
        "net.host: db1\nnet.port: 5432\nnet.tls: true",
        "tags: a, b\nrate: 1.10",
    ]
    assert extracted.title == "Server"
    assert extracted.coverage == Coverage("values", 7, 7)


def test_records_alike_become_a_table() -> None:
    extracted = read(
        "json", '{"users": [{"id": 1, "at": {"city": "Ulm"}}, {"id": 2, "at": {"city": "Bern"}}]}'
    )
    assert texts(extracted)[0] == "users:"
    assert row_of(extracted, "Bern") == {"id": "2", "at.city": "Bern"}
    assert block_of(extracted, "Bern").row == 2


def test_records_of_different_kinds_are_read_one_by_one() -> None:
    extracted = read("json", '[{"a": 1}, {"b": 2, "c": {"d": [1, {"e": 3}]}}, "loose"]')
    assert texts(extracted) == ["a: 1", "b: 2", "c.d[1]: 1\nc.d[2].e: 3", "[3]: loose"]


def test_long_text_is_a_paragraph() -> None:
    extracted = read("json", '{"id": 5, "body": "line one\\nline two", "end": "x"}')
    assert texts(extracted) == ["id: 5", "body:\nline one\nline two", "end: x"]


def test_long_list_of_numbers_is_read_in_rows() -> None:
    extracted = read("json", '{"n": [' + ", ".join(map(str, range(2000))) + "]}")
    assert all(text.startswith("n: ") for text in texts(extracted))
    assert len(extracted.blocks) < 20
    assert "1998, 1999" in extracted.text


def test_bare_value() -> None:
    assert read("json", '"only a string"').text == "only a string"


def test_broken_json_is_plain_text_with_a_warning() -> None:
    extracted = read("json", '{\n"name": "Ann",\n"city": \n')
    assert '"name": "Ann"' in extracted.text
    assert extracted.warnings == ("The file is not valid JSON (line 4); it is read as plain text.",)


def test_lines_in_a_json_file_are_records() -> None:
    extracted = read("json", '{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n')
    assert row_of(extracted, "3") == {"a": "3", "b": "4"}
    assert extracted.warnings == ()


@pytest.mark.parametrize("data", ["[" * 100_000, '{"a":' * 1000 + "1" + "}" * 1000])
def test_depth_is_bounded(data: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        read("json", data)
    assert caught.value.fault is Fault.TOO_LARGE


def test_brackets_in_strings_are_not_depth() -> None:
    assert read("json", '{"a": "' + "[" * 1000 + '"}').text.startswith("a:\n[[[")


def test_huge_numbers_are_kept() -> None:
    number = "9" * 5000
    assert number in read("json", f'{{"n": {number}}}').text


def test_lines_know_their_numbers_and_bad_ones_are_named() -> None:
    extracted = read("jsonl", '{"q": "one"}\n\nbad\n{"q": "two", "deep": [{"x": 1}]}\n')
    assert block_of(extracted, "q: two").line == 4
    assert "deep[1].x: 1" in extracted.text
    assert extracted.warnings == ("Line 3 is not valid JSON and left out.",)
    assert extracted.coverage == Coverage("records", 3, 2)


def test_lines_alike_become_a_table() -> None:
    extracted = read("jsonl", '{"q": "one", "n": 1}\n{"q": "two", "n": 2}\n')
    assert row_of(extracted, "two") == {"q": "two", "n": "2"}
    assert [block.line for block in extracted.blocks if block.kind is BlockKind.TABLE_ROW] == [1, 2]


def test_file_without_a_good_line_is_corrupt() -> None:
    with pytest.raises(ExtractionError) as caught:
        read("jsonl", "no\njson\n")
    assert caught.value.fault is Fault.CORRUPT


def test_too_many_records_are_refused() -> None:
    with pytest.raises(ExtractionError) as caught:
        read("jsonl", "1\n" * 6, limits=Limits(max_rows=5))
    assert caught.value.fault is Fault.TOO_LARGE
