"""The tables of a run: ratios first, times beside them. The same ones go into the manual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.evaluation.report import aligned
from benchmarks.speed.measurement import Measurement

Key = tuple[str, str]  # system, metric
_END_TO_END: dict[str, Key] = {
    "http/sql": ("http", "http_over_sql_p50"),
    "service/sql": ("service", "service_over_sql_p50"),
    "http/budgeted": ("http", "http_over_budgeted_sql_p50"),
    "http p50": ("http", "p50"),
    "p95": ("http", "p95"),
    "p99": ("http", "p99"),
    "service p50": ("service", "p50"),
    "sql p50": ("sql", "p50"),
    "budgeted p50": ("sql budgeted", "p50"),
    "embedding p50": ("embedder", "p50"),
}
_NARROWED: dict[str, Key] = {
    "service/sql": ("service", "service_over_sql_p50"),
    "recall@10": ("service", "recall@10"),
    "limit filled": ("service", "limit_filled"),
    "same as sql": ("service", "sql_overlap@10"),
    "p50": ("service", "p50"),
    "p95": ("service", "p95"),
    "p99": ("service", "p99"),
    "sql p50": ("sql", "p50"),
}
_STEPS = ("analyse_query", "embed_query", "retrieve", "fuse", "load", "total")
_WORKED: tuple[Key, ...] = (
    ("extraction", "seconds"),
    ("embedder", "seconds"),
    ("embedder", "chunks"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title: a line for each shape and size that `holds`, a column for each figure."""

    name: str
    title: str
    holds: Callable[[str], bool]
    columns: dict[str, Key]

    def lines(self, rows: Sequence[Measurement]) -> list[list[str]]:
        """Heading and lines; empty where nothing of it was measured."""
        wanted = set(self.columns.values())
        held = [r for r in rows if self.holds(r.shape) and (r.system, r.metric) in wanted]
        values = {(r.shape, r.size, r.system, r.metric): r for r in held}
        present = {(r.system, r.metric) for r in held}
        columns = {label: key for label, key in self.columns.items() if key in present}
        places = list(dict.fromkeys((row.shape, row.size) for row in held))
        lines = [["shape", "size", *columns]]
        lines += [
            [shape, f"{size:,}", *(_shown(values.get((shape, size, *key))) for key in columns.values())]
            for shape, size in places
        ]  # fmt: skip
        return lines if held else []


def _begins(*beginnings: str) -> Callable[[str], bool]:
    return lambda shape: shape.startswith(beginnings)


def _is(*names: str) -> Callable[[str], bool]:
    return lambda shape: shape in names


_ASKED = _is("one base", "chinese", "tenants")
TABLES = (
    Table("end-to-end", "End to end beside hand-written SQL (ms)", _ASKED, _END_TO_END),
    Table("steps", "Where the service's time goes (p50, ms)", _ASKED, {step: ("service", f"step_{step}_p50") for step in _STEPS}),
    Table("clients", "Clients at once over HTTP (ms)", lambda shape: "client" in shape, {
        "requests/s": ("http", "throughput"), "p50": ("http", "p50"), "p95": ("http", "p95"), "p99": ("http", "p99")}),
    Table("narrowed", "Under filters and permissions (ms)", lambda shape: _ASKED(shape) or _begins("filter", "person")(shape), _NARROWED),
    Table("cold", "After a start of the database (ms)", _is("cold"), {
        "cold/hot": ("service", "cold_over_hot_p50"), "first question": ("first question", "p50"),
        "next p50": ("next questions", "p50"), "next p95": ("next questions", "p95"), "hot p50": ("hot", "p50")}),
    Table("crossing", "Reading through or own indexes: retrieval alone (ms)", _is("crossing"), {
        "through/indexes": ("service", "through_over_indexes_p50"), "through p50": ("read through", "p50"),
        "through p95": ("read through", "p95"), "indexes p50": ("own indexes", "p50"), "indexes p95": ("own indexes", "p95")}),
    Table("budgets", "Passages scored for the words of a question (ms)", _begins("budget"), {
        "overlap@10": ("service", "overlap@10"), "overlap@100": ("service", "overlap@100"),
        "p50": ("service", "p50"), "p95": ("service", "p95")}),
    Table("steps-of-index", "Steps in the vector index (ms)", _begins("ef_search"), {
        "recall@10": ("sql", "recall@10"), "p50": ("sql", "p50"), "p95": ("sql", "p95")}),
    Table("growth", "From 100 thousand to a million chunks", _is("growth"), {
        name: (name, "growth_p50") for name in ("http", "service", "sql")}),
    Table("storage", "Size (MB) and making (s)", _ASKED, {
        "rows": ("service", "rows"), "word index": ("service", "index_words"), "vector index": ("service", "index_vectors"),
        "rows/s": ("service", "load_rows/s"), "statistics": ("service", "statistics_s"),
        "word index s": ("service", "build_words_s"), "vector index s": ("service", "build_vectors_s")}),
    Table("memory", "Memory after all this (MB)", _is("memory"), {"web": ("web", "rss"), "postgres": ("postgres", "rss")}),
    Table("ingestion", "Ingestion", _is("ingestion"), {
        f"{metric}, {system}": (system, metric)
        for system in ("1 worker", "2 workers") for metric in ("ingest_overhead", "documents", "chunks", "deadlocks")}),
    Table("ingestion-alone", "Extraction and embedding by themselves", _is("ingestion"), {
        f"{system} {metric}": (system, metric) for system, metric in _WORKED}),
)  # fmt: skip


def _shown(row: Measurement | None) -> str:
    if row is None:
        return "–"
    if row.unit in {"ratio", "share"}:
        return f"{row.value:.2f}" if row.unit == "ratio" else f"{row.value:.3f}"
    return f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.3g}"


def as_text(rows: Sequence[Measurement]) -> str:
    """All tables for a terminal."""
    shown = [(table.title, lines) for table in TABLES if (lines := table.lines(rows))]
    return "\n\n".join(f"{title}\n{aligned(lines)}" for title, lines in shown)


def as_markdown(lines: Sequence[Sequence[str]]) -> str:
    """One table for the manual; columns of figures are aligned to the right."""
    heading, *others = lines
    rule = ["---:" if _are_figures(column) else "---" for column in zip(*others, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, rule, *others])


def _are_figures(cells: Sequence[str]) -> bool:
    return all(cell == "–" or cell.replace(",", "").replace(".", "").isdigit() for cell in cells)
