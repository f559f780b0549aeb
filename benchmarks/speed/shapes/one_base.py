"""One large base at each size: end to end against hand-written SQL, clients at once, sizes, memory."""

from __future__ import annotations

from benchmarks.progress import say
from benchmarks.speed.bench import Bench
from benchmarks.speed.comparison import HTTP, SERVICE, Case, check_answers, compare, over_http
from benchmarks.speed.filling import Filled
from benchmarks.speed.processes import index_mb, postgres_mb, resident_mb, rows_mb
from benchmarks.speed.web import put_load
from knowledge.services.base_indexes import WORDS

SHAPE = "one base"
CLIENTS = (1, 4, 16)


def measure(bench: Bench) -> None:
    """Every size in turn."""
    for size in bench.options.sizes:
        say(f"One base of {size:,} chunks …")
        measure_base(bench, SHAPE, bench.base(size))
    _memory(bench)


def measure_base(bench: Bench, shape: str, filled: Filled, language: str = "en") -> None:
    """Everything that is measured of a single base."""
    case = Case(shape, filled.chunks, language, [filled], bench.questions(language))
    report_storage(bench, shape, filled)
    compare(bench, case)
    check_answers(bench, case)
    for count in CLIENTS:
        asks = [over_http(bench, case) for _ in range(count)]
        for seconds in (bench.options.load_s / 5, bench.options.load_s):  # the first one warms up
            load = put_load(asks, seconds)
        name = f"{shape}, {count} clients" if count > 1 else f"{shape}, 1 client"
        bench.results.add(name, filled.chunks, HTTP, "throughput", load.throughput, "requests/s")
        bench.results.add_times(name, filled.chunks, HTTP, load.times)


def report_storage(bench: Bench, shape: str, filled: Filled) -> None:
    """Size of rows and indexes, and how long they took to make."""
    base, results = filled.base, bench.results
    sizes = {
        "rows": rows_mb(base.id),
        "index_words": index_mb(base.id, WORDS),
        "index_vectors": index_mb(base.id, base.embedding_field),
    }
    for metric, megabytes in sizes.items():
        if megabytes:  # a small base has no indexes
            results.add(shape, filled.chunks, SERVICE, metric, megabytes, "MB")
    for metric, value in filled.facts.items():
        unit = "rows/s" if metric == "rows/s" else "s"
        results.add(shape, filled.chunks, SERVICE, f"load_{metric}" if unit == "rows/s" else metric, value, unit)  # fmt: skip


def _memory(bench: Bench) -> None:
    """What the processes hold after all this."""
    size = max(bench.options.sizes)
    held = {
        "web": resident_mb(bench.server.pid) if bench.server else None,
        "postgres": postgres_mb(),
    }
    for system, megabytes in held.items():
        if megabytes is None:
            bench.results.remark(f"This system does not say how much memory {system} holds.")
        else:
            bench.results.add("memory", size, system, "rss", megabytes, "MB")
