"""Groundwork itself: documents through its ingestion, questions through its search service."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from unittest.mock import patch

from accounts.access import Actor
from accounts.tenancy import new_id, tenant_scope
from benchmarks.evaluation.bases import base_of
from benchmarks.evaluation.sets import JudgedSet
from benchmarks.ground import fill_base
from benchmarks.peers.drive import DEPTH, FEW, WARM_UP
from benchmarks.peers.environments import NotRunError
from benchmarks.peers.outcome import HYBRID, Measured, NotRun, Outcome
from benchmarks.peers.runner import Passage
from benchmarks.progress import say
from benchmarks.vector_cache import CachedEmbedder
from knowledge.models import Chunk, KnowledgeBase
from knowledge.services.knowledge_bases import delete_knowledge_base
from knowledge.services.lexical_index import text_in_context
from providers.base import Embedder, Vectors
from search.request import MAX_QUERY_CHARS, SearchRequest, Strategy
from search.services.search import search

SYSTEMS = {HYBRID: False, "Groundwork hybrid + rerank": True}  # with the reranker?
_DEADLINE_MS = 60_000  # nothing may be cut off here
_SAMPLE = 256  # passages by which the speed of embedding is measured
_BATCH = 32  # as ingestion embeds


@dataclass(slots=True)
class _Stopwatch:
    """Seconds spent in a call."""

    seconds: float = field(default=0.0)

    def around(
        self, embed: Callable[[Sequence[str]], Vectors]
    ) -> Callable[[Sequence[str]], Vectors]:
        """The same call, timed."""

        def timed(texts: Sequence[str]) -> Vectors:
            started = time.perf_counter()
            try:
                return embed(texts)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


def ingest(
    actor: Actor, judged: JudgedSet, embedder: CachedEmbedder
) -> tuple[KnowledgeBase, float]:
    """Fill a new base one document after the other, in this process; seconds without embedding."""
    with tenant_scope(actor.tenant_id):
        for base in KnowledgeBase.objects.filter(name=judged.name):
            delete_knowledge_base(actor=actor, base=base)
    _warm_up(actor)
    watch = _Stopwatch()
    with patch.object(embedder, "embed_passages", watch.around(embedder.embed_passages)):
        started = time.perf_counter()
        base = base_of(actor, judged, fresh=True)
        return base, time.perf_counter() - started - watch.seconds


def _warm_up(actor: Actor) -> None:
    """Have the model built and loaded: an installation does that once, not for each set."""
    base = fill_base(actor, f"warm-up {new_id()}", [("first", "Warm-up", "A first document.")])
    with tenant_scope(actor.tenant_id):
        delete_knowledge_base(actor=actor, base=base)


def passages(actor: Actor, base: KnowledgeBase) -> list[Passage]:
    """What the product cut the documents into."""
    with tenant_scope(actor.tenant_id):
        rows = Chunk.objects.filter(knowledge_base=base).order_by("id")
        columns = rows.values_list(
            "document__external_id", "document__title", "heading_path", "content"
        )
        return [Passage(key, text_in_context(title, path, content)) for key, title, path, content in columns]  # fmt: skip


def seconds_to_embed(embedder: Embedder, cut: Sequence[Passage]) -> float:
    """How long the model takes for all passages, told from every n-th of them."""
    step = max(1, len(cut) // _SAMPLE)
    texts = [passage.text for passage in cut[::step]]
    embedder.embed_passages(texts[:_BATCH])  # the model is loaded by now
    started = time.perf_counter()
    for first in range(0, len(texts), _BATCH):
        embedder.embed_passages(texts[first : first + _BATCH])
    return (time.perf_counter() - started) / len(texts) * len(cut)


@dataclass(frozen=True, slots=True)
class Product:
    """A filled base and what its filling took; None where it was kept from an earlier run."""

    actor: Actor
    base: KnowledgeBase
    ingest_s: float | None
    embed_s: float | None

    def measure(self, system: str, queries: Mapping[str, str]) -> Outcome:
        """Its answers to every question, and their times less the question's embedding."""
        say(f"{self.base.name}: {system}")
        rerank = SYSTEMS[system]
        try:
            self._ask_all(dict(list(queries.items())[:WARM_UP]), DEPTH, rerank=rerank)
            query_ms, rankings = self._ask_all(queries, DEPTH, rerank=rerank)
            few_ms, _ = self._ask_all(queries, FEW, rerank=rerank)
        except NotRunError as error:
            return NotRun(system, str(error))
        total_s = None if self.ingest_s is None or self.embed_s is None else self.ingest_s + self.embed_s  # fmt: skip
        notes = "search service in process; one worker ingests, files stored, read and cut"
        return Measured(system, "", self.ingest_s, query_ms, few_ms, rankings, notes, None, total_s)  # fmt: skip

    def _ask_all(
        self, queries: Mapping[str, str], limit: int, *, rerank: bool
    ) -> tuple[list[float], dict[str, list[str]]]:
        """Milliseconds of each question, and its documents by their best passage. Raises `NotRunError`
        when a search was degraded."""
        query_ms, rankings = [], {}
        for key, text in queries.items():
            rankings[key], spent_ms = self._ask(text, limit, rerank=rerank)
            query_ms.append(spent_ms)
        return query_ms, rankings

    def _ask(self, text: str, limit: int, *, rerank: bool) -> tuple[list[str], float]:
        request = SearchRequest(
            text[:MAX_QUERY_CHARS],
            knowledge_bases=[self.base.slug],
            strategy=Strategy.HYBRID,
            limit=limit,
            rerank=rerank,
            deadline_ms=_DEADLINE_MS,
        )
        started = time.perf_counter()
        outcome = search(self.actor, request)
        spent_ms = (time.perf_counter() - started) * 1000 - outcome.timings_ms.get("embed_query", 0)
        refusal = "; ".join(f"{name}: {why}" for name, why in outcome.degraded)
        if rerank and "rerank" not in outcome.timings_ms:
            refusal = refusal or "the search service does not rerank"
        if refusal:
            raise NotRunError(refusal)
        found = [hit.chunk.document.external_id for hit in outcome.hits]
        return list(dict.fromkeys(found)), spent_ms
