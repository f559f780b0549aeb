"""The search service: the one path that the API, the admin's test page and the command line share.

Each statement is a round trip, and a round trip costs more than what most of them do: the scope and
the words are read in one transaction, everything else in a second one, and nothing is asked twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from django.db import OperationalError, connection, transaction

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import RemoteError
from providers.registry import embedder_for
from search.access import build_scope
from search.fusion import fuse
from search.outcome import LATE, Hit, SearchOutcome, Total
from search.ranking import (
    Ranked,
    across_scripts,
    best_per_document,
    boosted,
    by_recency,
    with_facts,
    without_duplicates,
)
from search.request import Mode, SearchRequest, Strategy
from search.reranking import DEPTH
from search.retrieval.facts import time_range
from search.retrieval.legs import Found, Scored, filename_leg
from search.retrieval.query import Part, Words, divide, legs_of, read_words, search_part
from search.retrieval.searchable import Searchable, narrowed
from search.services.facets import count_facets
from search.services.hits import count_unembedded, load_hits
from search.services.rerank import rerank_hits

__all__ = ["Hit", "SearchOutcome", "search"]

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_FACET_VALUES = 20
_LEAST_TIMEOUT_MS = 50  # room for the statements that set and lift the bound


def search(actor: Actor, request: SearchRequest) -> SearchOutcome:
    """Find passages. Raises `InvalidInputError` or `ForbiddenError`; a failing leg degrades the
    answer and is named in it."""
    started = time.perf_counter()
    with tenant_scope(actor.tenant_id):
        outcome, words = _prepare(actor, request)
    vectors = _embed(outcome)
    deadline = started + request.deadline_ms / 1000
    with tenant_scope(actor.tenant_id):
        searchable = Searchable(outcome.scope, tuple(outcome.scope.base_ids), request.condition)
        with outcome.timed("retrieve"):
            legs = _retrieve(outcome, searchable, words, vectors, deadline)
        with outcome.timed("fuse"):
            ranked = _rank(outcome, searchable, legs)
        with outcome.timed("load"):
            outcome.hits = load_hits(outcome, ranked)
        if request.facets:
            outcome.facets = _facets(outcome, deadline)
        _complete(outcome, legs, words)
    if request.reranks:
        rerank_hits(outcome, deadline)
        outcome.hits = outcome.hits[request.offset : request.offset + request.limit]
    outcome.sources = _sources(outcome)
    outcome.timings_ms["total"] = round((time.perf_counter() - started) * 1000, 2)
    return outcome


def _prepare(actor: Actor, request: SearchRequest) -> tuple[SearchOutcome, Words]:
    scope, remark = build_scope(actor, request.knowledge_bases, request.as_principals)
    outcome = SearchOutcome(request, scope)
    outcome.degraded += [
        (name, "Not available in this installation.") for name in request.unavailable
    ]
    if remark:
        outcome.degraded.append(("principals", remark))
    with outcome.timed("analyse_query"):
        words = read_words(request.query, scope.base_ids)
    outcome.terms, outcome.languages = list(words.terms), words.languages
    if request.mode is not Mode.FILENAME and request.strategy is not Strategy.SEMANTIC:
        outcome.synonyms = [(one.asked, list(one.added)) for one in words.synonyms]
    return outcome, words


def _embed(outcome: SearchOutcome) -> dict[str, list[float]]:
    """The query's vector for each embedding model among the bases."""
    request = outcome.request
    vectors: dict[str, list[float]] = {}
    if request.mode is Mode.FILENAME or request.strategy is Strategy.LEXICAL:
        return vectors
    with outcome.timed("embed_query"):
        for model in sorted({base.embedding_model for base in outcome.scope.bases}):
            try:
                vectors[model] = embedder_for(model).embed_queries([request.query])[0].tolist()
            except RemoteError as error:
                outcome.degraded.append(("embed_query", error.message))
    return vectors


def _retrieve(
    outcome: SearchOutcome,
    searchable: Searchable,
    words: Words,
    vectors: dict[str, list[float]],
    deadline: float,
) -> dict[str, list[Scored]]:
    """The legs that were done by `deadline`, a moment of `time.perf_counter`."""
    request, bases = outcome.request, outcome.scope.bases
    if request.mode is Mode.FILENAME:
        look = partial(filename_leg, searchable, request.query, request.depth)
        return {"filename": _in_time(outcome, "filename", deadline, look) or []}
    if request.strategy is Strategy.SEMANTIC:
        words = Words(words.terms, words.languages)
    if any(base.own_indexes for base in bases):
        narrow = _in_time(outcome, "filter", deadline, partial(narrowed, searchable))
        searchable = narrow or searchable
    found: list[tuple[Part, Found]] = []
    exactly = searchable.document_ids is not None
    for part in divide(bases, exactly=exactly, alone=words.own):
        run = partial(search_part, searchable, part, words, vectors.get(part.model), request.depth)
        result = _in_time(outcome, "retrieve", deadline, run)
        if result is not None:
            found.append((part, result))
    _limit_statements(0)  # what follows is short and has to be done
    return legs_of(found, request.depth)


def _in_time(
    outcome: SearchOutcome, name: str, deadline: float, run: Callable[[], _Result]
) -> _Result | None:
    """What `run` gives; None, and said so, when it is not done by the deadline. The savepoint leaves
    the others whole."""
    left_ms = int((deadline - time.perf_counter()) * 1000)
    try:
        if left_ms > 0:
            with transaction.atomic():
                _limit_statements(max(left_ms, _LEAST_TIMEOUT_MS))
                return run()
    except OperationalError:
        logger.info("A search ran into its deadline in %s", name)
    if (name, LATE) not in outcome.degraded:
        outcome.degraded.append((name, LATE))
    return None


def _limit_statements(timeout_ms: int) -> None:
    """Bound each further statement of the transaction; 0 lifts the bound. Undone with its savepoint."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(timeout_ms)])


def _facets(outcome: SearchOutcome, deadline: float) -> dict[str, object]:
    request = outcome.request
    count = partial(count_facets, outcome.scope, request.condition, request.facets, _FACET_VALUES)
    with outcome.timed("facets"):
        counted = _in_time(outcome, "facets", deadline, count)
        _limit_statements(0)
    return counted or {}


def _rank(
    outcome: SearchOutcome, searchable: Searchable, legs: dict[str, list[Scored]]
) -> list[Ranked]:
    """The asked-for window of the fused list; all from its beginning where it will be reranked."""
    request = outcome.request
    ranked = with_facts(fuse(legs)[: request.depth])
    if legs.get("lexical"):
        ranked = across_scripts(ranked, request.query, len([leg for leg in legs.values() if leg]))
    ranked = boosted(ranked, outcome.scope.bases)
    if request.recency and (times := time_range(searchable)) is not None:
        ranked = by_recency(ranked, request.recency, *times)
    if request.group_by_document:
        ranked = best_per_document(ranked)
    end = request.offset + request.limit
    start = request.offset
    if request.reranks:
        start, end = 0, max(end, DEPTH)
    if request.collapse_duplicates:
        ranked = without_duplicates(ranked, end)
    return ranked[start:end]


def _complete(outcome: SearchOutcome, legs: dict[str, list[Scored]], words: Words) -> None:
    """What is said about the results as a whole."""
    request = outcome.request
    outcome.total = _total(outcome, legs, words)
    if request.mode is Mode.INSTANT and request.strategy is not Strategy.LEXICAL:
        outcome.unembedded = count_unembedded(outcome.scope.base_ids)


def _sources(outcome: SearchOutcome) -> list[dict[str, object]]:
    return [
        {
            "name": "knowledge base",
            "state": "ok" if outcome.hits else "empty",
            "ms": outcome.timings_ms.get("retrieve", 0.0),
            "count": len(outcome.hits),
        }
    ]


def _total(outcome: SearchOutcome, legs: dict[str, list[Scored]], words: Words) -> Total:
    """Every passage resembles a query a little, so those that hold a word of it count, and those
    returned. Exact while no leg was cut off; beyond that from the frequencies of the words."""
    seen = {hit.chunk_id for leg in legs.values() for hit in leg}
    depth = outcome.request.depth
    if outcome.lacks_legs or len(legs.get("lexical", ())) < depth:
        exact = not outcome.lacks_legs and not any(len(leg) >= depth for leg in legs.values())
        return Total(len(seen), exact=exact)
    without = 1.0
    for frequency in words.frequencies.values():
        without *= 1 - min(1.0, frequency / max(words.chunks, 1))
    estimate = words.chunks * (1 - without) if outcome.request.condition is None else 0
    return Total(max(len(seen), round(estimate)), exact=False)
