"""The search service: the one path that the API, the admin's test page and the command line share."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import F, Sum

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import RemoteError
from knowledge.lexical.analyzer import is_code, query_occurrences
from knowledge.lexical.weights import query_weights
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.statistics import corpus_statistics, document_frequencies
from providers.registry import embedder_for
from search.access import AccessScope, build_scope
from search.fusion import Fused, fuse
from search.request import Mode, SearchRequest, Strategy
from search.retrieval.legs import Scored, filename_leg, lexical_leg, vector_leg

_LATE = "Ran out of time (deadline_ms)."
_LEAST_TIMEOUT_MS = 50  # room for the statements that set and lift the bound


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: the chunk with its document and base loaded, and where it ranked."""

    chunk: Chunk
    fused: Fused


@dataclass(slots=True)
class SearchOutcome:
    """Everything a search found and how it went. `degraded` holds (operation, reason)."""

    request: SearchRequest
    scope: AccessScope
    hits: list[Hit] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    languages: tuple[str, ...] = ()
    degraded: list[tuple[str, str]] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)
    unembedded: int = 0  # chunks that are found by their words only, their vectors being computed
    sources: list[dict[str, object]] = field(default_factory=list)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of a step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.timings_ms[step] = round(self.timings_ms.get(step, 0.0) + spent, 2)


def search(actor: Actor, request: SearchRequest) -> SearchOutcome:
    """Find passages. Raises `InvalidInputError` or `ForbiddenError`; a failing leg degrades the
    answer and is named in it."""
    started = time.perf_counter()
    with tenant_scope(actor.tenant_id):
        scope, remark = build_scope(actor, request.knowledge_bases, request.as_principals)
        outcome = SearchOutcome(request, scope)
        outcome.degraded += [
            (name, "Not available in this installation.") for name in request.unavailable
        ]
        if remark:
            outcome.degraded.append(("principals", remark))
        with outcome.timed("analyse_query"):
            analysis = _analyse(outcome)
    vectors = _embed(outcome) if _wants_vectors(request) else {}
    with tenant_scope(actor.tenant_id):
        with outcome.timed("retrieve"):
            legs = _retrieve(outcome, analysis, vectors, started + request.deadline_ms / 1000)
        with outcome.timed("fuse"):
            fused = fuse(legs, {})
        with outcome.timed("load"):
            outcome.hits = _load(fused, request)
        outcome.sources = [_source_state(outcome)]
    outcome.timings_ms["total"] = round((time.perf_counter() - started) * 1000, 2)
    return outcome


def _wants_vectors(request: SearchRequest) -> bool:
    return request.mode is Mode.INSTANT and request.strategy is not Strategy.LEXICAL


@dataclass(frozen=True, slots=True)
class _Analysis:
    """BM25 weights of the query's terms, and of those among them that are codes."""

    weights: dict[int, float]
    codes: list[str]
    code_weights: dict[int, float]


def _analyse(outcome: SearchOutcome) -> _Analysis:
    statistics = corpus_statistics(outcome.scope.base_ids)
    outcome.languages = statistics.languages
    # A word that the query repeats counts as often as it stands there.
    repeated = query_occurrences(outcome.request.query, statistics.languages)
    outcome.terms = list(dict.fromkeys(repeated))
    frequencies = document_frequencies(outcome.scope.base_ids, outcome.terms)
    known = [term for term in repeated if term in frequencies]
    codes = [term for term in dict.fromkeys(known) if is_code(term)]
    return _Analysis(
        query_weights(known, frequencies, statistics.chunks),
        codes,
        query_weights(codes, frequencies, statistics.chunks),
    )


def _embed(outcome: SearchOutcome) -> dict[str, list[float]]:
    """The query's vector for each embedding model among the bases."""
    vectors = {}
    with outcome.timed("embed_query"):
        for model in sorted({base.embedding_model for base in outcome.scope.bases}):
            try:
                vectors[model] = (
                    embedder_for(model).embed_queries([outcome.request.query])[0].tolist()
                )
            except RemoteError as error:
                outcome.degraded.append(("embed_query", error.message))
    return vectors


def _retrieve(
    outcome: SearchOutcome,
    analysis: _Analysis,
    vectors: dict[str, list[float]],
    deadline: float,
) -> dict[str, Sequence[Scored]]:
    """The legs that were done by `deadline`, a moment of `time.perf_counter`."""
    legs: dict[str, Sequence[Scored]] = {}
    for name, run in _plan(outcome, analysis, vectors):
        left_ms = int((deadline - time.perf_counter()) * 1000)
        if left_ms <= 0:
            outcome.degraded.append((name, _LATE))
            continue
        with _leg(outcome, name):
            _limit_statements(max(left_ms, _LEAST_TIMEOUT_MS))
            legs[name] = run()
            _limit_statements(0)  # what follows is short and has to be done
    return legs


def _plan(
    outcome: SearchOutcome, analysis: _Analysis, vectors: dict[str, list[float]]
) -> Iterator[tuple[str, Callable[[], list[Scored]]]]:
    """The legs that mode and strategy ask for."""
    request, scope = outcome.request, outcome.scope
    if request.mode is Mode.FILENAME:
        yield "filename", partial(filename_leg, scope, request.condition, request.query)
        return
    if request.strategy is not Strategy.SEMANTIC:
        yield (
            "lexical",
            partial(lexical_leg, scope, request.condition, outcome.terms, analysis.weights),
        )
    if request.strategy is Strategy.HYBRID and analysis.codes:
        # To a vector one code is like another; a passage that holds the very code has to win.
        yield (
            "exact",
            partial(lexical_leg, scope, request.condition, analysis.codes, analysis.code_weights),
        )
    for number, (model, bases) in enumerate(_by_model(scope.bases).items()):
        if model in vectors:
            # Scores of different models do not compare: each model is a leg of its own.
            name = "vector" if number == 0 else f"vector {model}"
            ids = [base.id for base in bases]
            yield name, partial(vector_leg, scope, request.condition, ids, vectors[model])


@contextmanager
def _leg(outcome: SearchOutcome, name: str) -> Iterator[None]:
    """A savepoint around a leg: one that runs out of time leaves the others whole."""
    try:
        with transaction.atomic(), outcome.timed(name):
            yield
    except OperationalError:
        outcome.degraded.append((name, _LATE))


def _by_model(bases: Sequence[KnowledgeBase]) -> dict[str, list[KnowledgeBase]]:
    groups: dict[str, list[KnowledgeBase]] = defaultdict(list)
    for base in sorted(bases, key=lambda base: (base.embedding_model, base.id)):
        groups[base.embedding_model].append(base)
    return groups


def _limit_statements(timeout_ms: int) -> None:
    """Bound each further statement of the transaction; 0 lifts the bound. Undone with its savepoint."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(timeout_ms)])


def _load(fused: Sequence[Fused], request: SearchRequest) -> list[Hit]:
    """The asked-for window of the fused list with everything a result shows, in two queries."""
    if request.group_by_document:
        fused = _best_per_document(fused)
    window = fused[request.offset : request.offset + request.limit]
    chunks: dict[UUID, Chunk] = {
        chunk.id: chunk
        for chunk in Chunk.objects.filter(id__in=[candidate.chunk_id for candidate in window])
        .select_related("document", "knowledge_base")
        .defer("lexemes", "lexical_weights", "embedding", "document__extracted_text")
    }
    return [
        Hit(chunks[candidate.chunk_id], candidate)
        for candidate in window
        if candidate.chunk_id in chunks
    ]


def _best_per_document(fused: Sequence[Fused]) -> list[Fused]:
    documents = dict(
        Chunk.objects.filter(id__in=[candidate.chunk_id for candidate in fused]).values_list(
            "id", "document_id"
        )
    )
    best: dict[UUID, Fused] = {}
    for candidate in fused:
        if candidate.chunk_id in documents:
            best.setdefault(documents[candidate.chunk_id], candidate)
    return list(best.values())


def _source_state(outcome: SearchOutcome) -> dict[str, object]:
    if _wants_vectors(outcome.request):
        unfinished = Document.objects.filter(
            knowledge_base_id__in=outcome.scope.base_ids, status=Document.Status.PROCESSING
        )
        waiting = unfinished.aggregate(total=Sum(F("chunk_count") - F("embedded_count")))["total"]
        outcome.unembedded = waiting or 0
    return {
        "name": "knowledge base",
        "state": "ok" if outcome.hits else "empty",
        "ms": outcome.timings_ms.get("retrieve", 0.0),
        "count": len(outcome.hits),
    }
