"""Speed and scale: `make bench`. The product beside hand-written SQL, in one run, over generated chunks
of real text. docs/benchmarks.md says what the numbers mean.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ground import RESULTS, write_rows
from benchmarks.revision import revision
from benchmarks.speed.bench import Options
from benchmarks.speed.measurement import Results
from benchmarks.speed.run import SHAPES, run
from benchmarks.speed.tables import as_text
from benchmarks.speed.targets import target_table, targets

_MILLION = 1_000_000
_LARGE = 100_000
_PRESETS: dict[bool, dict[str, Any]] = {
    False: {
        "sizes": (10_000, _LARGE), "chinese": 10_000, "tenants": 300, "crossing": (1_000, 2_000, 4_000, 8_000, 16_000, 32_000),
        "passages": 1_500, "questions": 60, "rounds": 3, "load_s": 5.0, "documents": 80,
    },
    True: {
        "sizes": (10_000,), "chinese": 2_000, "tenants": 50, "crossing": (1_000, 4_000, 16_000),
        "passages": 400, "questions": 20, "rounds": 2, "load_s": 2.0, "documents": 20,
    },
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for; print the tables and keep the rows."""
    options = _options(arguments)
    started = time.monotonic()
    results = run(options)
    print(as_text(results.rows))
    print("\n".join(["", *results.remarks]))
    print(f"\nTargets\n{target_table(results)}")
    _keep(options, results, time.monotonic() - started)


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small bases, few questions: a few minutes"
    )
    parser.add_argument(
        "--million",
        action="store_true",
        help="one base of a million chunks besides; an hour and 10 GB at first",
    )
    parser.add_argument("--shapes", type=_names, default=SHAPES, help=f"some of {','.join(SHAPES)}")
    parser.add_argument(
        "--sizes", type=_numbers, help="chunks of the one large base, such as 10000,100000"
    )
    parser.add_argument(
        "--crossing", type=_numbers, help="sizes at which both ways of searching are compared"
    )
    for name, what in (
        ("chinese", "chunks of the Chinese base"),
        ("tenants", "tenants with small bases; 1000 for the full shape"),
        ("passages", "real passages of each language that chunks are made of"),
        ("questions", "questions of each shape"),
        ("rounds", "rounds of all questions"),
        ("documents", "documents to ingest"),
    ):
        parser.add_argument(f"--{name}", type=int, help=what)
    parser.add_argument(
        "--vectors",
        type=Path,
        default=RESULTS / "vectors.sqlite",
        help="file of kept vectors of real passages",
    )
    given = parser.parse_args(arguments)  # fmt: skip
    values = dict(_PRESETS[given.quick])
    values |= {name: getattr(given, name) for name in values if getattr(given, name, None)}
    # Filters and budgets are measured on the largest base below a million.
    values["filtered"] = max(size for size in values["sizes"])
    if given.million:
        values["sizes"] = (*values["sizes"], _MILLION)
    return Options(shapes=given.shapes, vectors=given.vectors, **values)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SHAPES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no shape {', '.join(unknown)}; use {', '.join(SHAPES)}")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _keep(options: Options, results: Results, seconds: float) -> None:
    facts = {
        "revision": revision(),
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()},
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "targets": [asdict(target) for target in targets(results)],
        "remarks": results.remarks,
        "seconds": round(seconds),
    }  # fmt: skip
    write_rows("bench.json", results.as_json(), run=facts)
    print(f"\nRows: {RESULTS / 'bench.json'} ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
