"""Writes what `make bench`, `make eval` and the peers have measured into docs/benchmarks.md:
`python -m benchmarks.report`.

The page has regions, `<!-- results NAME -->` to `<!-- /results -->`; each is rewritten from the files of
results, and one that nothing was measured for is left as it is. Charts become files beside the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.charts import Group, bar_chart
from benchmarks.ground import RESULTS, ROOT
from benchmarks.speed.measurement import Measurement
from benchmarks.speed.tables import TABLES, as_markdown

PAGE = ROOT / "docs" / "benchmarks.md"
CHARTS = ROOT / "docs" / "images" / "benchmarks"
_REGION = re.compile(r"(<!-- results ([a-z0-9-]+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)
_MEANS = {"mean": "all", "mean en": "English", "mean zh": "Chinese", "mean other": "other languages", "mean code": "code"}  # fmt: skip
_WORDS = {True: "met", False: "**not met**", None: "not measured"}

Row = Mapping[str, Any]


def main() -> None:
    """Rewrite the page and draw the charts."""
    found = {name: _read(f"{name}.json") for name in ("bench", "eval", "peers")}
    written = contents(found)
    PAGE.write_text(rewritten(PAGE.read_text(), written.regions))
    CHARTS.mkdir(parents=True, exist_ok=True)
    for name, svg in written.charts.items():
        (CHARTS / f"{name}.svg").write_text(svg)
    print(f"{PAGE}: {', '.join(sorted(written.regions)) or 'nothing was measured yet'}")


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / name
    if not file.exists():
        return None
    content: dict[str, Any] = json.loads(file.read_text())
    return content


@dataclass(slots=True)
class Contents:
    """The text of each region that something was measured for, and the charts by name."""

    regions: dict[str, str] = field(default_factory=dict)
    charts: dict[str, str] = field(default_factory=dict)

    def draw(self, name: str, title: str, groups: Iterable[Group], *, digits: int = 1) -> None:
        """A chart and the region that shows it, unless there is nothing to draw."""
        filled = [group for group in groups if group.values]
        if filled:
            self.charts[name] = bar_chart(title, filled, digits)
            self.regions[f"chart-{name}"] = f"![{title}](images/benchmarks/{name}.svg)"


def contents(found: Mapping[str, dict[str, Any] | None]) -> Contents:
    """What the files of results, by name, have to say."""
    written = Contents()
    for name, write in (("bench", _speed), ("eval", _quality), ("peers", _peers)):
        content = found.get(name)
        if content is not None:
            write(content, written)
    return written


def rewritten(page: str, regions: Mapping[str, str]) -> str:
    """The page with the content of its regions renewed. Raises `KeyError` for a region it lacks."""
    there = {match[2] for match in _REGION.finditer(page)}
    missing = sorted(set(regions) - there)
    if missing:
        raise KeyError(f"The page has no region {', '.join(missing)}.")

    def renew(match: re.Match[str]) -> str:
        content = regions.get(match[2])
        return match[0] if content is None else f"{match[1]}\n{content}\n\n{match[4]}"

    return _REGION.sub(renew, page)


def _speed(content: dict[str, Any], page: Contents) -> None:
    rows = [Measurement(**row) for row in content["rows"]]
    for table in TABLES:
        if lines := table.lines(rows):
            page.regions[table.name] = as_markdown(lines)
    run = content["run"]
    lines = [["target", "state", "measured"]]
    lines += [[target["text"], _WORDS[target["met"]], target["measured"]] for target in run["targets"]]  # fmt: skip
    page.regions["targets"] = as_markdown(lines)
    page.regions["speed-run"] = "\n".join(
        f"- {line}" for line in (_revision(run), *run["remarks"]) if line
    )
    values = {(row.shape, row.size, row.system, row.metric): row.value for row in rows}
    asked = [(row.shape, row.size) for row in rows if row.metric == "http_over_sql_p50"]
    page.draw("end-to-end", "Median of a search (ms)", (
        Group(f"{shape}, {size:,}", {name: values[key] for name in ("http", "service", "sql", "sql budgeted") if (key := (shape, size, name, "p50")) in values})
        for shape, size in asked
    ))  # fmt: skip
    page.draw("clients", "Searches a second over HTTP", (
        Group(f"{row.shape}, {row.size:,}", {"requests/s": row.value}) for row in rows if row.metric == "throughput"
    ))  # fmt: skip
    page.draw("crossing", "Retrieval alone, median (ms)", (
        Group(f"{size:,} chunks", {name: values["crossing", size, name, "p50"] for name in ("read through", "own indexes")})
        for size in dict.fromkeys(row.size for row in rows if row.shape == "crossing")
    ))  # fmt: skip


def _revision(run: Mapping[str, Any]) -> str:
    measured = f"Revision {run['revision']}" if run["revision"] else "No revision known"
    return f"{measured}, {run['cores']} cores, {run['seconds'] / 60:.0f} minutes."


def _quality(content: dict[str, Any], page: Contents) -> None:
    rows = [row for row in content["rows"] if row["metric"] == "ndcg@10"]
    page.regions["quality"] = as_markdown(_pivoted(rows, "set", "system", 3))
    means = [row for row in rows if row["set"] in _MEANS]
    page.draw("quality", "nDCG@10, mean over the sets", (
        Group(system, {_MEANS[row["set"]]: row["value"] for row in means if row["system"] == system})
        for system in dict.fromkeys(row["system"] for row in means)
    ), digits=3)  # fmt: skip


def _peers(content: dict[str, Any], page: Contents) -> None:
    measured = [row for row in content["rows"] if row["value"] is not None]
    parts = []
    for name in dict.fromkeys(row["shape"] for row in content["rows"]):
        of_set = [row for row in measured if row["shape"] == name]
        parts.append(f"**{name}**\n\n{as_markdown(_pivoted(of_set, 'system', 'metric', 3))}")
        parts += [
            f"{row['system']} was not run: {row['reason']}"
            for row in content["rows"]
            if row["shape"] == name and row["value"] is None
        ]
    page.regions["peers"] = "\n\n".join(parts)
    for metric, title, digits in (("ndcg@10", "nDCG@10", 3), ("search_p50", "Median of a search (ms)", 1)):  # fmt: skip
        chosen = [row for row in measured if row["metric"] == metric]
        page.draw(f"peers-{metric.partition('@')[0].replace('_', '-')}", f"{title}, beside peers", (
            Group(system, {row["shape"]: row["value"] for row in chosen if row["system"] == system})
            for system in dict.fromkeys(row["system"] for row in chosen)
        ), digits=digits)  # fmt: skip


def _pivoted(rows: Sequence[Row], down: str, across: str, digits: int) -> list[list[str]]:
    columns = list(dict.fromkeys(row[across] for row in rows))
    values = {(row[down], row[across]): row["value"] for row in rows}
    lines = [[down, *columns]]
    for name in dict.fromkeys(row[down] for row in rows):
        cells = [values.get((name, column)) for column in columns]
        lines.append([name, *("–" if cell is None else f"{cell:,.{digits}f}" for cell in cells)])
    return lines


if __name__ == "__main__":
    main()
