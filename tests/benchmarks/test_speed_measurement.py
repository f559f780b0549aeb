"""Percentiles, recall, overlap, turns, tables and targets of the measurement of speed."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.speed.measurement import Measurement, Results, Times, alternate, overlap, recall
from benchmarks.speed.tables import as_markdown, as_text
from benchmarks.speed.targets import Target, add_growth, targets


def test_percentiles_of_known_times() -> None:
    found = Times([float(value) for value in range(1, 102)]).percentiles()
    assert found == {"p50": 51.0, "p95": 96.0, "p99": 100.0}


def test_percentiles_are_those_of_statistics_whatever_the_order() -> None:
    ms = [7.0, 1.0, 3.0, 9.0, 2.0]
    cuts = statistics.quantiles(sorted(ms), n=100, method="inclusive")
    found = Times(ms).percentiles()
    assert found == {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}
    assert found["p50"] == Times(ms).median == 3.0


def test_a_single_time_is_every_percentile() -> None:
    assert Times([4.0]).percentiles() == {"p50": 4.0, "p95": 4.0, "p99": 4.0}


@pytest.mark.parametrize(
    ("found", "right", "share"),
    [
        (list("abcdefghij"), list("abcdefghij"), 1.0),
        (list("abcdefghix"), list("abcdefghij"), 0.9),
        (list("jihgfedcba"), list("abcdefghij"), 1.0),
        (["a", "b"], ["a", "b"], 1.0),  # no more exist
        (["a"], ["a", "b"], 0.5),
        ([], ["a"], 0.0),
        ([], [], 1.0),
        (list("abcdefghij"), list("abcdefghikjl"), 1.0),  # the last ones tie: any of them will do
        (list("abcdefghxyj"), list("abcdefghij"), 0.8),  # the eleventh comes too late
    ],
)
def test_recall(found: list[str], right: list[str], share: float) -> None:
    assert recall(found, right) == pytest.approx(share)


def test_overlap_is_of_the_first_ones() -> None:
    assert overlap(["a", "b", "c"], ["b", "x", "a"], 2) == 0.5
    assert overlap([], ["a"], 10) == 1.0


def test_every_system_answers_every_question_equally_often() -> None:
    asked: dict[str, list[int]] = {"one": [], "other": []}
    times = alternate({name: seen.append for name, seen in asked.items()}, 12, 2)
    # Once to warm up, twice counted.
    assert {name: sorted(seen) for name, seen in asked.items()} == dict.fromkeys(asked, sorted([*range(12)] * 3))  # fmt: skip
    assert [len(times[name].ms) for name in asked] == [24, 24]


def test_systems_take_turns_by_blocks() -> None:
    order: list[str] = []
    alternate({name: lambda _n, name=name: order.append(name) for name in ("a", "b")}, 20, 1)  # type: ignore[misc] # bound at once
    assert order == (["a"] * 10 + ["b"] * 20 + ["a"] * 10) * 2


def state(results: Results, beginning: str) -> Target:
    return next(target for target in targets(results) if target.text.startswith(beginning))


def test_targets_take_the_worst_figure() -> None:
    results = Results()
    results.add("one base", 100, "service", "recall@10", 0.99, "share")
    results.add("filter by value, 1 %", 100, "service", "recall@10", 0.97, "share")
    results.add("ef_search 100", 100, "sql", "recall@10", 0.5, "share")  # only tried
    found = state(results, "recall@10")
    assert found.met is False
    assert "filter by value, 1 %" in found.measured


def test_each_ratio_over_http_is_a_target() -> None:
    results = Results()
    results.add("one base", 10_000, "http", "http_over_sql_p50", 2.0, "ratio")
    results.add("one base", 100_000, "http", "http_over_sql_p50", 2.01, "ratio")
    assert [target.met for target in targets(results) if target.text.startswith("HTTP")] == [True, False]  # fmt: skip


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert {target.met for target in targets(Results())} == {None}


def test_growth_needs_both_sizes() -> None:
    results = Results()
    results.add("one base", 100_000, "http", "p50", 10.0, "ms")
    add_growth(results)
    assert not [row for row in results.rows if row.metric == "growth_p50"]
    results.add("one base", 1_000_000, "http", "p50", 15.0, "ms")
    add_growth(results)
    assert results.get("growth", 1_000_000, "http", "growth_p50") == 1.5


def test_tables_show_what_there_is() -> None:
    rows = [
        Measurement("one base", 10_000, "http", "http_over_sql_p50", 1.512, "ratio"),
        Measurement("one base", 10_000, "http", "p50", 23.41, "ms"),
        Measurement("chinese", 2_000, "http", "p50", 1234.5, "ms"),
    ]
    text = as_text(rows)
    assert "End to end" in text
    assert "Clients" not in text
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["shape", "size", "http/sql", "http", "p50"],
        ["--------", "------", "--------", "--------"],
        ["one", "base", "10,000", "1.51", "23.4"],
        ["chinese", "2,000", "–", "1,234"],
    ]


def test_a_table_in_markdown() -> None:
    table = as_markdown([["shape", "p50"], ["one", "2.5"], ["two", "–"]])
    assert table == "| shape | p50 |\n| --- | ---: |\n| one | 2.5 |\n| two | – |"
