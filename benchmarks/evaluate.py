"""Retrieval quality: `make eval`. Small judged sets through the product's ingestion and search.

nDCG@10 with linear gains as trec_eval computes it; Recall@10 and MRR@10 count any positive judgement. The sets lie beside
the checkout; where they are absent the run says so and ends.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ground import EVALSETS, fill_base, ground, write_rows
from search.request import SearchRequest, Strategy
from search.services.search import search

SAMPLE = ("xquad-en", "xquad-zh", "dragonball")
LANGUAGES = {"xquad-en": "en", "xquad-zh": "zh", "dragonball": "en+zh"}


def main() -> None:
    """Run the sets named on the command line, or the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=SAMPLE)
    parser.add_argument(
        "--queries", type=int, default=200, help="judged queries a set, in id order"
    )
    options = parser.parse_args()
    if not EVALSETS.is_dir():
        sys.exit(
            "The evaluation sets are not here (expected in ../shared/evalsets); nothing was measured."
        )
    rows: list[dict[str, object]] = []
    with ground() as actor:
        for name in options.sets:
            base = fill_base(actor, name, _documents(EVALSETS / name))
            queries, judgements = _questions(EVALSETS / name, options.queries)
            for strategy in (Strategy.LEXICAL, Strategy.SEMANTIC, Strategy.HYBRID):
                ranked = {
                    query_id: _ranked(search(actor, SearchRequest(
                        text, knowledge_bases=[base.slug], strategy=strategy, limit=10, group_by_document=True,
                    )))
                    for query_id, text in queries.items()
                }  # fmt: skip
                for metric, value in _measure(ranked, judgements).items():
                    rows.append({"set": name, "language": LANGUAGES.get(name, ""), "system": strategy.value, "metric": metric, "value": round(value, 4)})  # fmt: skip
                    print(f"{name:12} {strategy:9} {metric:10} {value:.3f}", flush=True)
    write_rows("eval.json", rows)


def _documents(folder: Path) -> list[tuple[str, str, str]]:
    packed = folder / "corpus.jsonl.gz"
    plain = folder / "corpus.jsonl"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    rows = [json.loads(line) for line in data.decode().splitlines()]
    return [(row["id"], row.get("title") or "", row["text"]) for row in rows if row["text"].strip()]


def _questions(folder: Path, most: int) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
    judgements: dict[str, dict[str, float]] = defaultdict(dict)
    with (folder / "qrels.tsv").open() as lines:
        for query_id, document_id, score in csv.reader(lines, delimiter="\t"):
            if score.replace(".", "", 1).isdigit() and float(score) > 0:
                judgements[query_id][document_id] = float(score)
    with (folder / "queries.jsonl").open() as lines:
        texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
    chosen = [query_id for query_id in texts if query_id in judgements][:most]
    return {query_id: texts[query_id] for query_id in chosen}, judgements


def _ranked(outcome: object) -> list[str]:
    return [hit.chunk.document.external_id for hit in outcome.hits]  # type: ignore[attr-defined]


def _measure(
    ranked: dict[str, list[str]], judgements: dict[str, dict[str, float]]
) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for query_id, found in ranked.items():
        wanted = judgements[query_id]
        gains = [wanted.get(document_id, 0.0) for document_id in found]
        sums["ndcg@10"] += _dcg(gains) / _dcg(sorted(wanted.values(), reverse=True)[:10])
        sums["recall@10"] += sum(gain > 0 for gain in gains) / len(wanted)
        sums["mrr@10"] += next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
    return {metric: total / len(ranked) for metric, total in sums.items()}


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


if __name__ == "__main__":
    main()
