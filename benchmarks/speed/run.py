"""Runs the groups of measurements that were asked for, in an order that lets them share bases."""

from __future__ import annotations

from importlib import import_module

from benchmarks.speed.bench import Options, prepared
from benchmarks.speed.measurement import Results
from benchmarks.speed.targets import add_growth

# Cold starts end every connection, and the workers want the cores for themselves: those come last.
SHAPES = (
    "one_base",
    "filters",
    "groups",
    "depths",
    "chinese",
    "tenants",
    "crossing",
    "cold",
    "ingestion",
)


def run(options: Options) -> Results:
    """All figures."""
    with prepared(options) as bench:
        for name in SHAPES:
            if name in options.shapes:
                import_module(f"benchmarks.speed.shapes.{name}").measure(bench)
            if name == "crossing":
                bench.stop_server()
        add_growth(bench.results)
        return bench.results
