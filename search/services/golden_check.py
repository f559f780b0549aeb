"""Checking one golden query through the real search, and saying in words what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.timezone import localtime

from accounts.access import operator_actor
from accounts.tenancy import tenant_scope
from config.errors import AppError, InvalidInputError
from knowledge.models import Chunk, Document, KnowledgeBase
from search.access import AccessScope
from search.models import GoldenQuery, GoldenStatus
from search.request import MAX_LIMIT, SearchRequest, Strategy
from search.retrieval.filters import compile_filter
from search.retrieval.searchable import Searchable
from search.services.golden_passage import Passage
from search.services.passage_checks import check_filter
from search.services.search import Hit, SearchOutcome, search

DEPTH = MAX_LIMIT  # results in which a passage that was lost is looked for
_DEADLINE_MS = 30_000
_NOT_JUDGED = "Not judged, as the search was not whole:"


@dataclass(frozen=True, slots=True)
class Check:
    """Status, rank of the passage (None: not among the first `DEPTH`), why, and what stood first."""

    status: GoldenStatus
    rank: int | None
    reason: str
    first: Hit | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    document: Document | None
    passage: Passage


def golden_request(golden: GoldenQuery, principals: Sequence[str]) -> SearchRequest:
    """The search that a golden query stands for, on behalf of some principals.

    Raises `InvalidInputError` naming what is wrong with the query or the filter.
    """
    return SearchRequest(
        query=golden.query,
        knowledge_bases=[str(golden.knowledge_base_id)],
        strategy=Strategy(golden.strategy),
        limit=DEPTH,
        condition=compile_filter(golden.filter),
        as_principals=list(principals),
        deadline_ms=_DEADLINE_MS,
    )


def check_golden_query(golden: GoldenQuery) -> Check:
    """Search as someone who may read the wanted document and look where its passage stands.

    Opens the tenant's scope itself; outside of one no connection is held while the query is embedded.
    """
    with tenant_scope(golden.tenant_id):
        target = _find_target(golden)
        principals = target.document.principals if target.document else []
    try:
        request = golden_request(golden, principals)
        outcome = search(operator_actor(golden.tenant_id), request)
    except InvalidInputError as error:
        details = " ".join(f"{fault.field}: {fault.message}" for fault in error.errors)
        return Check(GoldenStatus.RED, None, f"{error.message} {details}".strip())
    except AppError as error:
        return Check(GoldenStatus.UNKNOWN, None, f"{_NOT_JUDGED} {error.message}")
    with tenant_scope(golden.tenant_id):
        return _judge(golden, target, outcome)


def _find_target(golden: GoldenQuery) -> _Target:
    documents = Document.objects.select_related("knowledge_base")
    document = documents.filter(id=golden.document_id, replaces=None).first()
    return _Target(document, Passage(golden.quote, document.extracted_text if document else ""))


def _judge(golden: GoldenQuery, target: _Target, outcome: SearchOutcome) -> Check:
    first = outcome.hits[0] if outcome.hits else None
    if outcome.degraded:
        told = "; ".join(f"{name}: {reason}" for name, reason in outcome.degraded)
        return Check(GoldenStatus.UNKNOWN, None, f"{_NOT_JUDGED} {told}", first)
    rank = _rank_of(golden, target.passage, outcome.hits)
    before = f"; before at {golden.rank}" if golden.rank and golden.rank != rank else ""
    if rank is not None and rank <= golden.within:
        return Check(GoldenStatus.GREEN, rank, f"Found at {rank}{before}.", first)
    if rank is not None:
        place = f"Found at {rank}, wanted among the first {golden.within}{before}."
        return Check(GoldenStatus.RED, rank, place, first)
    reason = _why_missing(golden, target, outcome)
    return Check(
        GoldenStatus.RED, None, reason or f"Not among the first {DEPTH} results{before}.", first
    )


def _rank_of(golden: GoldenQuery, passage: Passage, hits: Sequence[Hit]) -> int | None:
    ranks = (
        rank
        for rank, hit in enumerate(hits, start=1)
        if hit.chunk.document_id == golden.document_id and passage.is_in(hit.chunk)
    )
    return next(ranks, None)


def _why_missing(golden: GoldenQuery, target: _Target, outcome: SearchOutcome) -> str:
    """What became of the passage; empty when it is there to be found."""
    document = target.document
    if document is None:
        return (
            f"The document “{golden.document_title}” was deleted.{_same_text(golden, outcome.hits)}"
        )
    if document.knowledge_base_id != golden.knowledge_base_id:
        return f"The document was moved to the knowledge base “{document.knowledge_base}”."
    if not document.principals:
        return "Nobody may find the document: it has no principals."
    return _why_no_chunk(golden, document, target.passage, outcome.scope)


def _why_no_chunk(
    golden: GoldenQuery, document: Document, passage: Passage, scope: AccessScope
) -> str:
    chunks: list[Chunk] = list(
        Chunk.objects.filter(document_id=document.id, live=True)
        .order_by("ordinal")
        .only("content", "start", "end", "edited_at", "enabled", "ordinal")
    )
    if not chunks:
        state = f"{document.get_status_display()}: {document.error}".rstrip(": ")
        return f"The document has no passages ({state})."
    holders = [chunk for chunk in chunks if passage.is_in(chunk)]
    if not holders:
        return f"The passage is gone from the document: {_what_changed(golden, document, chunks)}"
    if not any(chunk.enabled for chunk in holders):
        return f"Chunk {_numbers(holders)}, which holds the passage, is switched off."
    searchable = Searchable(scope, tuple(scope.base_ids))
    filtered = [check_filter(searchable, chunk, golden.filter) for chunk in holders]
    return "" if any(check.passed for check in filtered) else f"Filtered out. {filtered[0].detail}"


def _what_changed(golden: GoldenQuery, document: Document, chunks: Sequence[Chunk]) -> str:
    """The edited chunk at the passage's place, or else the document."""
    edited = [chunk for chunk in chunks if chunk.edited_at and chunk.ordinal == golden.ordinal]
    if edited and edited[0].edited_at:
        when = f"{localtime(edited[0].edited_at):%Y-%m-%d %H:%M}"
        return f"chunk {_numbers(edited)} was edited on {when}."
    if document.indexed_at is None:
        return "it is being indexed."
    return (
        f"its text was changed; it was indexed on {localtime(document.indexed_at):%Y-%m-%d %H:%M}."
    )


def _same_text(golden: GoldenQuery, hits: Sequence[Hit]) -> str:
    passage = Passage(golden.quote, "")
    for rank, hit in enumerate(hits[: golden.within], start=1):
        if passage.is_in(hit.chunk):
            return (
                f" The same text is found at {rank} in “{hit.chunk.document}”: save it from there."
            )
    return ""


def _numbers(chunks: Sequence[Chunk]) -> str:
    return ", ".join(f"#{chunk.ordinal + 1}" for chunk in chunks)


def require_searchable(base: KnowledgeBase) -> None:
    """Raise `InvalidInputError` for an archived base, in which nothing is found."""
    if base.status != KnowledgeBase.Status.ACTIVE:
        raise InvalidInputError(
            f"“{base}” is archived, so nothing is found in it. Make it active to run its golden queries."
        )
