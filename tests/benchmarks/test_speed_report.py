"""Results in the manual: regions and charts."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.charts import Group, bar_chart
from benchmarks.report import PAGE, contents, rewritten

SVG = "{http://www.w3.org/2000/svg}"
BENCH: dict[str, Any] = {
    "rows": [
        {"shape": "one base", "size": 10_000, "system": "http", "metric": "http_over_sql_p50", "value": 1.5, "unit": "ratio"},
        {"shape": "one base", "size": 10_000, "system": "http", "metric": "p50", "value": 30.0, "unit": "ms"},
        {"shape": "one base", "size": 10_000, "system": "sql", "metric": "p50", "value": 20.0, "unit": "ms"},
    ],
    "run": {
        "revision": "abc", "cores": 2, "seconds": 600, "remarks": ["Something to know."],
        "targets": [{"text": "HTTP at most 2 ×", "met": True, "measured": "1.50"}],
    },
}  # fmt: skip
EVAL: dict[str, Any] = {
    "rows": [
        {"set": "scifact", "language": "en", "system": "hybrid", "metric": "ndcg@10", "value": 0.71},
        {"set": "mean", "language": "", "system": "hybrid", "metric": "ndcg@10", "value": 0.71},
        {"set": "scifact", "language": "en", "system": "hybrid", "metric": "mrr@10", "value": 0.6},
    ]
}  # fmt: skip
PEERS: dict[str, Any] = {
    "rows": [
        {"shape": "scifact", "size": 9, "system": "Groundwork", "metric": "ndcg@10", "value": 0.7, "unit": ""},
        {"shape": "scifact", "size": 9, "system": "Groundwork", "metric": "search_p50", "value": 21.5, "unit": "ms"},
        {"shape": "scifact", "size": 9, "system": "Other", "metric": "not run", "value": None, "unit": "", "reason": "It is not there."},
    ]
}  # fmt: skip


def test_bars_are_as_long_as_their_values() -> None:
    root = ET.fromstring(bar_chart("T", [Group("a", {"x": 10.0, "y": 5.0}), Group("b", {"y": 2.5})]))  # fmt: skip
    bars = [bar for bar in root.iter(f"{SVG}rect") if bar.get("height") == "16"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths == pytest.approx([widths[0], widths[0] / 2, widths[0] / 4], abs=0.1)
    assert [bar.get("class") for bar in bars] == ["s0", "s1", "s1"]
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert labels == ["T", "x", "y", "a", "10.0", "5.0", "b", "2.5"]


def test_a_chart_has_colours_for_dark_pages_and_takes_any_text() -> None:
    drawn = bar_chart('<A & "B">', [Group("a < b", {"x & y": 0.0})])
    assert ET.fromstring(drawn).get("aria-label") == '<A & "B">'
    assert "prefers-color-scheme:dark" in drawn


def test_regions_are_renewed_and_the_rest_is_left() -> None:
    page = "A\n<!-- results one -->\nold\n<!-- /results -->\nB\n<!-- results two -->\n<!-- /results -->\n"
    new = rewritten(page, {"one": "new"})
    assert new == "A\n<!-- results one -->\n\nnew\n\n<!-- /results -->\nB\n<!-- results two -->\n<!-- /results -->\n"  # fmt: skip
    assert rewritten(new, {"one": "new"}) == new


def test_a_region_that_the_page_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="three"):
        rewritten("<!-- results one -->\n<!-- /results -->", {"three": ""})


def test_the_page_has_a_region_for_everything() -> None:
    from benchmarks.speed.tables import TABLES

    written = contents({"bench": BENCH, "eval": EVAL, "peers": PEERS})
    every = {table.name: "" for table in TABLES} | dict.fromkeys(("chart-clients", "chart-crossing"), "")  # fmt: skip
    rewritten(PAGE.read_text(), {**every, **written.regions})


def test_what_the_files_say() -> None:
    written = contents({"bench": BENCH, "eval": EVAL, "peers": PEERS})
    assert "| one base | 10,000 | 1.50 | 30 | 20 |" in written.regions["end-to-end"]
    assert "| HTTP at most 2 × | met | 1.50 |" in written.regions["targets"]
    assert "Something to know." in written.regions["speed-run"]
    assert written.regions["quality"].splitlines()[2:] == ["| scifact | 0.710 |", "| mean | 0.710 |"]  # fmt: skip
    assert "Other was not run: It is not there." in written.regions["peers"]
    assert set(written.charts) == {"end-to-end", "quality", "peers-ndcg", "peers-search-p50"}
    assert "images/benchmarks/end-to-end.svg" in written.regions["chart-end-to-end"]


def test_nothing_measured_changes_nothing() -> None:
    written = contents({"bench": None})
    assert (written.regions, written.charts) == ({}, {})
    assert rewritten(PAGE.read_text(), {}) == PAGE.read_text()
