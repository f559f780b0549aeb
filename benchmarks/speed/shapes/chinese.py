"""One base in Chinese, asked in Chinese."""

from __future__ import annotations

from benchmarks.progress import say
from benchmarks.speed.bench import Bench
from benchmarks.speed.shapes.one_base import measure_base

SHAPE = "chinese"


def measure(bench: Bench) -> None:
    """As one base in English."""
    size = bench.options.chinese
    say(f"A Chinese base of {size:,} chunks …")
    measure_base(bench, SHAPE, bench.base(size, "zh"), "zh")
