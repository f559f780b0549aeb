"""The rows of a run, and the tables and targets that are read off them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.evaluation.metrics import METRICS
from benchmarks.evaluation.sets import CODE, MIXES, SAMPLE_NAME, JudgedSet

MAIN_METRIC = "ndcg@10"
MEAN = "mean"
_GROUPS = {"en": "English", "zh": "Chinese", "other": "other languages", CODE: "code"}


@dataclass(frozen=True, slots=True)
class SetFacts:
    """What of a set was measured, for the first columns of the table."""

    name: str
    language: str
    documents: int
    whole: int
    questions: int

    @classmethod
    def of(cls, judged: JudgedSet) -> SetFacts:
        """The sizes of a set."""
        return cls(judged.name, judged.language, len(judged.documents), judged.whole, len(judged.questions))  # fmt: skip

    @property
    def size(self) -> str:
        """The documents, saying so when some were left out."""
        cut = f" of {self.whole:,}" if self.documents < self.whole else ""
        return f"{self.documents:,}{cut}"

    @property
    def counted(self) -> bool:
        """Whether the set takes part in the means: a mix repeats others, the sample is tiny."""
        return self.name not in MIXES and self.name != SAMPLE_NAME and " " not in self.name

    @property
    def group(self) -> str:
        """`en`, `zh`, `code` or `other`; a set of several languages belongs to none of them."""
        if "+" in self.language:
            return ""
        return self.language if self.language in {"en", "zh", CODE} else "other"


@dataclass(slots=True)
class Results:
    """Values by set, system and metric, in the order they were measured."""

    sets: list[SetFacts] = field(default_factory=list)
    values: dict[tuple[str, str, str], float] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)  # what to know → sets it is true of

    def remark(self, name: str, text: str) -> None:
        """Something to be printed below the tables, once for all the sets that it is true of."""
        self.remarks.setdefault(text, []).append(name)

    def remark_lines(self) -> list[str]:
        """The remarks as they are printed."""
        return [f"{text} ({', '.join(names)})" for text, names in self.remarks.items()]

    def add(self, name: str, system: str, measured: dict[str, float]) -> None:
        """The metrics of a system on a set."""
        for metric, value in measured.items():
            self.values[name, system, metric] = value

    def get(self, name: str, system: str, metric: str = MAIN_METRIC) -> float | None:
        """One value, None where it was not measured."""
        return self.values.get((name, system, metric))

    def systems(self) -> list[str]:
        """Every system with a value, in the order of measuring."""
        return list(dict.fromkeys(system for _, system, _ in self.values))

    def counted(self, group: str = "") -> list[SetFacts]:
        """The sets of a mean."""
        return [facts for facts in self.sets if facts.counted and group in {"", facts.group}]

    def mean(self, system: str, metric: str = MAIN_METRIC, group: str = "") -> float | None:
        """A system's mean over all sets or those of a group; None unless it has a value on each."""
        values = [self.get(facts.name, system, metric) for facts in self.counted(group)]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None

    def rows(self) -> list[dict[str, object]]:
        """Everything measured and the means, as eval.json holds it."""
        languages = {facts.name: facts.language for facts in self.sets}
        rows: list[dict[str, object]] = [
            _row(name, languages.get(name, ""), system, metric, value)
            for (name, system, metric), value in self.values.items()
        ]
        for group, label in [("", MEAN), *((group, f"{MEAN} {group}") for group in _GROUPS)]:
            for system in self.systems():
                for metric in METRICS:
                    mean = self.mean(system, metric, group)
                    if mean is not None:
                        rows.append(_row(label, group, system, metric, mean))
        return rows


def _row(name: str, language: str, system: str, metric: str, value: float) -> dict[str, object]:
    return {"set": name, "language": language, "system": system, "metric": metric, "value": round(value, 4)}  # fmt: skip


def main_table(results: Results) -> str:
    """nDCG@10: sets as rows, systems as columns, then the means."""
    systems = results.systems()
    lines = [["set", "language", "documents", "questions", *systems]]
    lines += [
        [facts.name, facts.language, facts.size, f"{facts.questions:,}"]
        + [_cell(results.get(facts.name, system)) for system in systems]
        for facts in results.sets
        if " " not in facts.name
    ]
    for group, label in {"": "all sets", **_GROUPS}.items():
        sets = results.counted(group)
        if sets:
            means = [_cell(results.mean(system, group=group)) for system in systems]
            questions = sum(facts.questions for facts in sets)
            lines.append([f"mean: {label}", "", "", f"{questions:,}", *means])
    return aligned(lines)


def other_table(results: Results) -> str:
    """The other metrics, one line a set and metric."""
    systems = results.systems()
    lines = [["set", "metric", *systems]]
    for name in [*(facts.name for facts in results.sets if " " not in facts.name), MEAN]:
        for metric in METRICS:
            values = [
                results.mean(system, metric) if name == MEAN else results.get(name, system, metric)
                for system in systems
            ]
            if metric != MAIN_METRIC and any(value is not None for value in values):
                lines.append([name, metric, *map(_cell, values)])
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns under one another: the first to the left, numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(_line(line, widths) for line in [lines[0], ["-" * width for width in widths], *lines[1:]])  # fmt: skip


def _line(line: Iterable[str], widths: Sequence[int]) -> str:
    first, *others = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join([first, *others]).rstrip()


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
