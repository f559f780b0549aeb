"""Retrieval quality: `make eval`. Judged sets through the product's ingestion and search, beside a
reference BM25 and exact cosine. docs/evaluation.md says what the numbers mean.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.evaluation.cross_language import TWIN_METRICS, TWINS, VARIANTS
from benchmarks.evaluation.report import MAIN_METRIC, Results, aligned, main_table, other_table
from benchmarks.evaluation.run import FULL, SAMPLE, Options, evaluate, runnable
from benchmarks.evaluation.sets import read_documents, read_judgements, read_questions
from benchmarks.evaluation.systems import STRATEGIES, SYSTEMS
from benchmarks.evaluation.targets import target_table, targets
from benchmarks.ground import EVALSETS, RESULTS, write_rows
from benchmarks.revision import revision

_QUESTIONS, _DOCUMENTS, _RERANKED = 50, 300, 20  # of a set, in the sample
_RERANKED_FULL = 200
_ALL = 10**9


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for; print the tables and keep the rows."""
    options = _options(arguments)
    started = time.monotonic()
    results = evaluate(options)
    print(_report(results))
    if not EVALSETS.is_dir():
        print(f"\nThe judged sets are not here (expected in {EVALSETS}): everything else is missing from the tables.")  # fmt: skip
    write_rows(
        "eval.json", results.rows(), run=_facts(options, results, time.monotonic() - started)
    )
    print(f"\nRows: {RESULTS / 'eval.json'}")


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluate", description=__doc__)
    parser.add_argument("sets", nargs="*", help="names of sets or mixes, or folders of own sets")
    parser.add_argument(
        "--full", action="store_true", help="every set, whole; takes hours at first"
    )
    parser.add_argument(
        "--queries", type=int, help="questions of each set, in the order of their ids"
    )
    parser.add_argument("--documents", type=int, help="documents of each set, judged ones aside")
    parser.add_argument("--rerank-queries", type=int, help="questions of each set to rerank")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--fresh", action="store_true", help="use nothing kept by earlier runs")
    parser.add_argument("--vectors", type=Path, default=RESULTS / "vectors.sqlite", help="file of kept vectors")  # fmt: skip
    given = parser.parse_args(arguments)
    names = tuple(given.sets) or (FULL if given.full else SAMPLE)
    sets = runnable(names)
    if not sets:
        parser.error(f"none of the sets is here; expected in {EVALSETS}")
    unknown = [name for name in sets if name not in FULL and not Path(name).is_dir()]
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)}. Known: {', '.join(FULL)}, or a folder.")
    return Options(
        sets=sets,
        systems=tuple(system for system in SYSTEMS if system in given.systems),
        questions=given.queries or (_ALL if given.full else _QUESTIONS),
        documents=given.documents or (_ALL if given.full else _DOCUMENTS),
        reranked=given.rerank_queries or (_RERANKED_FULL if given.full else _RERANKED),
        fresh=given.fresh,
        vectors=given.vectors,
    )


def _report(results: Results) -> str:
    parts = [f"{MAIN_METRIC}\n{main_table(results)}", f"Other metrics\n{other_table(results)}"]
    if results.get(TWINS, "hybrid", next(iter(TWIN_METRICS.values()))) is not None:
        parts.append(f"Twin paragraph among the first ten, {TWINS}\n{_twin_table(results)}")
    if any(facts.name in VARIANTS for facts in results.sets):
        parts.append(f"Questions in another writing, {MAIN_METRIC}\n{_variant_table(results)}")
    parts += results.remark_lines()
    parts.append(f"Targets\n{target_table(results)}")
    return "\n\n".join(parts)


def _twin_table(results: Results) -> str:
    lines = [["direction", "", "semantic", "hybrid"]]
    lines += [
        [metric, "", *(_shown(results.get(TWINS, system, metric)) for system in ("semantic", "hybrid"))]
        for metric in TWIN_METRICS.values()
    ]  # fmt: skip
    return aligned(lines)


def _variant_table(results: Results) -> str:
    systems = [
        system for system in STRATEGIES if results.get(next(iter(VARIANTS)), system) is not None
    ]
    lines = [["questions", "writing", *systems]]
    for origin in dict.fromkeys(origin for origin, _ in VARIANTS.values()):
        names = [origin, *(name for name, (of, _) in VARIANTS.items() if of == origin)]
        lines += [
            [origin, name.removeprefix(origin).strip() or "as they are"]
            + [_shown(results.get(name, system)) for system in systems]
            for name in names
        ]
    return aligned(lines)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _facts(options: Options, results: Results, seconds: float) -> dict[str, Any]:
    return {
        "revision": revision(),
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()},
        "sets": [asdict(facts) for facts in results.sets],
        "targets": [asdict(target) for target in targets(results)],
        "remarks": results.remark_lines(),
        "seconds": round(seconds),
    }  # fmt: skip


def _documents(folder: Path) -> list[tuple[str, str, str]]:
    return [(row.id, row.title, row.text) for row in read_documents(folder) if row.text.strip()]


def _questions(folder: Path, most: int) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
    judgements, texts = read_judgements(folder), read_questions(folder)
    chosen = [key for key in texts if key in judgements][:most]
    return {key: texts[key] for key in chosen}, judgements


if __name__ == "__main__":
    main()
