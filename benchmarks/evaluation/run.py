"""One evaluation: which sets, how much of them, and every system over each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.db import connection

from accounts.access import Actor
from benchmarks.evaluation.bases import base_of
from benchmarks.evaluation.bm25 import bm25_rankings
from benchmarks.evaluation.cross_language import (
    CHINESE,
    ENGLISH,
    TWIN_SYSTEMS,
    VARIANTS,
    pair,
    rewritten,
    twin_shares,
)
from benchmarks.evaluation.metrics import mean_over_questions
from benchmarks.evaluation.report import Results, SetFacts
from benchmarks.evaluation.sets import (
    LANGUAGES,
    MIX_QUESTIONS,
    MIXES,
    SAMPLE_NAME,
    JudgedSet,
    cut,
    load_set,
    mix,
    spread_questions,
)
from benchmarks.evaluation.systems import (
    BM25,
    COSINE,
    RERANK,
    STRATEGIES,
    Searcher,
    UnavailableError,
    cosine_rankings,
)
from benchmarks.evaluation.targets import SAME_QUESTIONS
from benchmarks.ground import EVALSETS, RESULTS, alone, ground, kept_vectors
from benchmarks.progress import say
from providers.base import Embedder

SAMPLE = (
    *("xquad-en", "scifact", "techqa-answers"),
    *("xquad-zh", "dureader-checklist-dev", "domainrag-zh"),
    *("xquad-de", "cosqa-code", SAMPLE_NAME, "en-mix", "zh-mix"),
)
FULL = (*LANGUAGES, *MIXES)
_EVERYTHING = 10**9


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. `questions`, `documents` and `reranked` bound each set."""

    sets: tuple[str, ...]
    systems: tuple[str, ...]
    questions: int
    documents: int
    reranked: int
    fresh: bool
    vectors: Path = RESULTS / "vectors.sqlite"


def evaluate(options: Options) -> Results:
    """Measure every system on every set."""
    with _tools(options) as (actor, embedder):
        run = Run(options, actor, embedder, Results())
        for judged in prepare(options):
            run.measure(judged)
        run.measure_across_languages()
    return run.results


def prepare(options: Options) -> Iterator[JudgedSet]:
    """The sets of a run, loaded and cut one by one. A mix of the sample is made of the sample's sets."""
    for name in options.sets:
        if name in MIXES:
            own = [part for part in MIXES[name] if part in options.sets]
            parts = own if options.sets == SAMPLE else MIXES[name]
            yield mix(name, [_cut(part, options, MIX_QUESTIONS) for part in parts])
        else:
            yield _cut(name, options, _EVERYTHING)


def runnable(names: Sequence[str]) -> tuple[str, ...]:
    """The sets that are here: without the folder of judged sets only the sample and own folders are."""
    if EVALSETS.is_dir():
        return tuple(names)
    return tuple(name for name in names if name == SAMPLE_NAME or Path(name).is_dir())


def _cut(name: str, options: Options, most_questions: int) -> JudgedSet:
    return cut(load_set(name), min(options.questions, most_questions), options.documents)


@contextmanager
def _tools(options: Options) -> Iterator[tuple[Actor, Embedder]]:
    with ExitStack() as stack:
        stack.enter_context(alone("evaluation"))
        actor = stack.enter_context(ground("evaluation"))
        with connection.cursor() as cursor:  # what a crash loses is ingested anew anyway
            cursor.execute("SET synchronous_commit TO off")
        path = options.vectors
        if options.fresh:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "vectors.sqlite"
        yield actor, stack.enter_context(kept_vectors(path))


@dataclass(frozen=True, slots=True)
class Run:
    """The measuring of one run, into its results."""

    options: Options
    actor: Actor
    embedder: Embedder
    results: Results
    searchers: dict[str, Searcher] = field(default_factory=dict)

    def measure(self, judged: JudgedSet) -> None:
        """Every system on one set."""
        self.results.sets.append(SetFacts.of(judged))
        if BM25 in self.options.systems:
            say(f"{judged.name}: {BM25}")
            self._add(judged, BM25, bm25_rankings(judged))
        if set(self.options.systems) - {BM25}:
            searcher = self._searcher(judged)
            if COSINE in self.options.systems:
                ranked = cosine_rankings(self.actor, searcher.base, self.embedder, judged.questions)
                self._add(judged, COSINE, ranked)
            self._search(searcher, judged, [system for system in self._asked() if system != RERANK])
            if RERANK in self.options.systems:
                self._rerank(searcher, spread_questions(judged, self.options.reranked))

    def measure_across_languages(self) -> None:
        """Twins and other writings, when the run has the sets for it."""
        if not {ENGLISH, CHINESE} <= set(self.options.sets):
            return
        english, chinese = (_cut(name, self.options, _EVERYTHING) for name in (ENGLISH, CHINESE))
        self._twins(pair(english, chinese))
        for name, (origin, _) in VARIANTS.items():
            judged = english if origin == ENGLISH else chinese
            self.results.sets.append(SetFacts.of(rewritten(judged, name)))
            systems = [system for system in self._asked() if system != RERANK]
            if systems:
                self._search(self._searcher(judged), rewritten(judged, name), systems)

    def _twins(self, both: JudgedSet) -> None:
        systems = [system for system in TWIN_SYSTEMS if system in self.options.systems]
        if systems:
            searcher = self._searcher(both)
            for system in systems:
                ranked = searcher.rankings(system, both.questions)
                self.results.add(both.name, system, twin_shares(ranked, both))

    def _asked(self) -> list[str]:
        return [system for system in STRATEGIES if system in self.options.systems]

    def _searcher(self, judged: JudgedSet) -> Searcher:
        """Over the base of the set, which a run builds or finds once."""
        if judged.name not in self.searchers:
            base = base_of(self.actor, judged, fresh=self.options.fresh)
            self.searchers[judged.name] = Searcher(self.actor, base)
        return self.searchers[judged.name]

    def _search(self, searcher: Searcher, judged: JudgedSet, systems: Sequence[str]) -> None:
        for system in systems:
            self._add(judged, system, searcher.rankings(system, judged.questions))

    def _rerank(self, searcher: Searcher, judged: JudgedSet) -> None:
        """The reranked questions, and beside them the same ones without it."""
        try:
            ranked = searcher.rankings(RERANK, judged.questions)
        except UnavailableError as error:
            self.results.remark(judged.name, f"No row for {RERANK}: {error}")
            return
        self._add(judged, SAME_QUESTIONS, searcher.rankings("hybrid", judged.questions))
        self._add(judged, RERANK, ranked)

    def _add(self, judged: JudgedSet, system: str, rankings: dict[str, list[str]]) -> None:
        self.results.add(judged.name, system, mean_over_questions(rankings, judged.judgements))
