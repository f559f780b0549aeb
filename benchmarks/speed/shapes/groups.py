"""People in one, fifty and a thousand groups; one in ten documents is for one of the groups only."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.progress import say
from benchmarks.speed.bench import Bench
from benchmarks.speed.comparison import Case
from benchmarks.speed.loading import GROUPS
from benchmarks.speed.shapes.filters import measure_narrowed

COUNTS = (1, 50, 1_000)


def measure(bench: Bench) -> None:
    """The same questions by people of more and more groups."""
    base = bench.base(bench.options.filtered)
    for count in COUNTS:
        say(f"A person in {count:,} groups …")
        groups = [f"group:{number * 7 % GROUPS}" for number in range(count)]
        principals = ("public", "user:someone@example.com", *groups)
        questions = [replace(question, principals=principals) for question in bench.questions()]
        label = f"{count:,} groups" if count > 1 else "1 group"
        measure_narrowed(bench, Case(f"person in {label}", base.chunks, "en", [base], questions))
