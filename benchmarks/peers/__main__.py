"""`python -m benchmarks.peers`: the same documents, vectors and questions through Groundwork and its peers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accounts.access import Actor
from benchmarks.evaluation.bases import base_of
from benchmarks.evaluation.sets import JudgedSet, cut, load_set
from benchmarks.ground import EVALSETS, RESULTS, alone, ground, kept_vectors, write_rows
from benchmarks.peers.outcome import Outcome
from benchmarks.peers.product import SYSTEMS, Product, ingest, passages, seconds_to_embed
from benchmarks.peers.report import SetOutcome, facts, rows, table
from benchmarks.peers.runner import LEFT_OUT, PEERS, Passage, Task, measure_peer
from benchmarks.progress import say
from benchmarks.vector_cache import CachedEmbedder
from config.env import set_default
from providers.backends.e5 import MODEL
from providers.base import Embedder, Vectors
from providers.registry import embedder_for
from search.request import MAX_QUERY_CHARS

SETS = ("scifact", "dureader-checklist-dev", "rgb-zh")
_DOCUMENTS = 5_200  # of a set, judged ones aside
_QUERIES = 300
_OURS = "groundwork"
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    sets: tuple[str, ...]
    peers: tuple[str, ...]
    queries: int
    documents: int
    vectors: Path


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and keep the rows."""
    options = _options(arguments)
    for name in ("HAYSTACK_TELEMETRY_ENABLED", "ANONYMIZED_TELEMETRY"):
        set_default(name, "False")  # peers inherit it
    set_default("HF_HUB_OFFLINE", "1")
    started, results = time.monotonic(), []
    real = embedder_for(MODEL)
    with alone("peers"), ground("peers") as actor, kept_vectors(options.vectors) as embedder:
        run = Run(options, actor, embedder, real)
        for name in options.sets:
            results.append(run.measure(cut(load_set(name), options.queries, options.documents)))
            print(f"{table(results[-1])}\n", flush=True)
    seconds = round(time.monotonic() - started)
    write_rows("peers.json", rows(results), run={**facts(results), "seconds": seconds})
    print(f"Rows: {RESULTS / 'peers.json'}")


def _options(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    known = (_OURS, *PEERS, *LEFT_OUT)
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of judged sets")
    parser.add_argument("--peers", nargs="+", default=known, choices=known)
    parser.add_argument("--queries", type=int, default=_QUERIES, help="of each set")
    parser.add_argument("--documents", type=int, default=_DOCUMENTS, help="of each set")
    parser.add_argument("--vectors", type=Path, default=RESULTS / "vectors.sqlite", help="file of kept vectors")  # fmt: skip
    given = parser.parse_args(arguments)
    if not EVALSETS.is_dir():
        parser.error(f"the judged sets are not here; expected in {EVALSETS}")
    return Options(tuple(given.sets), tuple(given.peers), given.queries, given.documents, given.vectors)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One run; `real` is the embedder without kept vectors, for the clock."""

    options: Options
    actor: Actor
    embedder: CachedEmbedder
    real: Embedder

    def measure(self, judged: JudgedSet) -> SetOutcome:
        """Every system on a set. Ours is first: the others get the passages that it cut."""
        product, cut_up = self._product(judged)
        outcomes: list[Outcome] = []
        if _OURS in self.options.peers:
            outcomes += [product.measure(system, judged.questions) for system in SYSTEMS]
        task = self._task(judged, cut_up)
        for name in self.options.peers:
            if name in LEFT_OUT:
                outcomes.append(LEFT_OUT[name])
            elif name != _OURS:
                say(f"{judged.name}: {name}")
                outcomes += measure_peer(name, task)
        return SetOutcome(judged, len(cut_up), outcomes)

    def _product(self, judged: JudgedSet) -> tuple[Product, list[Passage]]:
        if _OURS not in self.options.peers:
            base = base_of(self.actor, judged, fresh=False)
            return Product(self.actor, base, None, None), passages(self.actor, base)
        base, seconds = ingest(self.actor, judged, self.embedder)
        cut_up = passages(self.actor, base)
        embed_s = seconds_to_embed(self.real, cut_up)
        return Product(self.actor, base, seconds, embed_s), cut_up

    def _task(self, judged: JudgedSet, cut_up: Sequence[Passage]) -> Task:
        queries = {key: text[:MAX_QUERY_CHARS] for key, text in judged.questions.items()}
        return Task(
            name=judged.name,
            language=judged.language,
            passages=cut_up,
            queries=queries,
            passage_vectors=self._vectors([passage.text for passage in cut_up]),
            query_vectors=self.embedder.embed_queries(list(queries.values())),
        )

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        parts = [self.embedder.embed_passages(texts[first : first + _BATCH]) for first in range(0, len(texts), _BATCH)]  # fmt: skip
        return np.concatenate(parts)


if __name__ == "__main__":
    main()
