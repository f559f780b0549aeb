"""Why a passage was not returned: the first obstacle on its way, with every check in words.

Whether and where it was returned is read off real searches; only its rank in each leg, which may lie
far beyond what a search looks at, is counted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import NotFoundError, RemoteError
from knowledge.access import visible_knowledge_bases
from knowledge.models import Chunk, Document
from providers.registry import embedder_for
from search.access import AccessScope, build_scope
from search.outcome import Hit
from search.request import MAX_LIMIT, MAX_WINDOW, Mode, SearchRequest, Strategy
from search.retrieval.legs import Vector
from search.retrieval.query import Words, divide, read_words
from search.retrieval.ranks import (
    Score,
    Standing,
    best_of,
    by_meaning,
    by_words,
    least_taken,
    score_of,
    standing,
)
from search.retrieval.searchable import Searchable
from search.services.passage_checks import (
    PassageCheck,
    check_base,
    check_document,
    check_enabled,
    check_filter,
    check_permission,
    check_words,
)
from search.services.search import search
from search.services.why_not_verdicts import Findings, Verdict, decide

__all__ = ["WhyNot", "explain_missing"]


@dataclass(slots=True)
class WhyNot:
    """The answer; `legs` are the passage's ranks and scores, `rank` its place when it was returned."""

    document: Document
    chunk: Chunk | None
    verdict: Verdict
    rank: int | None = None
    checks: list[PassageCheck] = field(default_factory=list)
    legs: dict[str, Standing] = field(default_factory=dict)

    @property
    def returned(self) -> bool:
        """Whether the search returns it."""
        return self.verdict.code == "returned"


@dataclass(frozen=True, slots=True)
class _Query:
    """The query as the searched bases know it."""

    searchable: Searchable
    words: Words
    vectors: Mapping[str, Sequence[float]]


def explain_missing(
    actor: Actor,
    request: SearchRequest,
    filter_tree: Mapping[str, Any] | None,
    *,
    chunk_id: UUID | None = None,
    document_id: UUID | None = None,
) -> WhyNot:
    """Why a search returns a passage or not; of a document the passage that fits the query best counts.

    Raises `NotFoundError` for what the caller may not see: readers see what the principals that they
    search as may read, those who keep the documents see all. Raises `InvalidInputError` as searching does.
    """
    with tenant_scope(actor.tenant_id):
        document, chunk = _find(actor, request, chunk_id, document_id)
        archived = check_base(document.knowledge_base, None)
        if not archived.passed:
            return _blocked(document, chunk, [check_document(document, chunk), archived])
        scope, _ = build_scope(actor, request.knowledge_bases, request.as_principals)
        words = read_words(request.query, scope.base_ids)
    query = _Query(
        Searchable(scope, tuple(scope.base_ids), request.condition), words, _embed(request, scope)
    )
    with tenant_scope(actor.tenant_id):
        if chunk_id is None and chunk is not None:
            chunk = _best_chunk(query, document, chunk)
        checks = _static_checks(query, document, chunk, filter_tree)
        if chunk is None or not all(check.passed for check in checks):
            return _blocked(document, chunk, checks)
    return _explain_ranks(actor, request, query, chunk, is_document=chunk_id is None, checks=checks)


def _find(
    actor: Actor, request: SearchRequest, chunk_id: UUID | None, document_id: UUID | None
) -> tuple[Document, Chunk | None]:
    chunks = Chunk.objects.select_related("document__knowledge_base", "knowledge_base").defer(
        "lexemes", "lexical_weights", "embedding", "embedding_alternate", "document__extracted_text"
    )
    chunk: Chunk | None
    if chunk_id is not None:
        chunk = chunks.filter(id=chunk_id).first()
        document = chunk.document if chunk else None
    else:
        documents = Document.objects.filter(id=document_id, replaces=None)
        document = documents.select_related("knowledge_base").defer("extracted_text").first()
        chunk = chunks.filter(document_id=document_id, live=True).order_by("ordinal").first()
    if document is None or not _may_see(actor, request, document):
        raise NotFoundError
    return document, chunk


def _may_see(actor: Actor, request: SearchRequest, document: Document) -> bool:
    if not visible_knowledge_bases(actor).filter(id=document.knowledge_base_id).exists():
        return False
    scope, _ = build_scope(actor, None, request.as_principals)
    return actor.sees_every_document or bool(set(scope.principals) & set(document.principals))


def _embed(request: SearchRequest, scope: AccessScope) -> dict[str, list[float]]:
    vectors: dict[str, list[float]] = {}
    if request.mode is Mode.FILENAME or request.strategy is Strategy.LEXICAL:
        return vectors
    for model in {base.embedding_model for base in scope.bases}:
        try:
            vectors[model] = embedder_for(model).embed_queries([request.query])[0].tolist()
        except RemoteError:  # the searches below say so
            continue
    return vectors


def _best_chunk(query: _Query, document: Document, first: Chunk) -> Chunk:
    score = _score_in(query, document)
    best = best_of(query.searchable, document.id, score) if score else None
    if best is None or best == first.id:
        return first
    found: Chunk = Chunk.objects.select_related("document", "knowledge_base").get(id=best)
    return found


def _score_in(query: _Query, document: Document) -> Score | None:
    base = document.knowledge_base
    values = query.vectors.get(base.embedding_model)
    if values is not None:
        return by_meaning(Vector(values, base.embedding_field))
    weights = query.words.for_bases([base.id]).weights
    return by_words(weights) if weights else None


def _static_checks(
    query: _Query, document: Document, chunk: Chunk | None, tree: Mapping[str, Any] | None
) -> list[PassageCheck]:
    scope = query.searchable.scope
    checks = [check_document(document, chunk)]
    checks += [check_enabled(chunk)] if chunk else []
    checks += [
        check_base(document.knowledge_base, scope),
        check_permission(chunk.principals if chunk else document.principals, scope),
    ]
    return checks + ([check_filter(query.searchable, chunk, tree)] if chunk else [])


def _blocked(document: Document, chunk: Chunk | None, checks: list[PassageCheck]) -> WhyNot:
    failed = next(check for check in checks if not check.passed)
    return WhyNot(document, chunk, Verdict(failed.verdict, failed.detail), checks=checks)


def _explain_ranks(
    actor: Actor,
    request: SearchRequest,
    query: _Query,
    chunk: Chunk,
    *,
    is_document: bool,
    checks: list[PassageCheck],
) -> WhyNot:
    asked = search(actor, request)
    returned = _position(asked.hits, None if is_document else chunk.id, chunk.document_id)
    if returned is not None:
        chunk = asked.hits[returned].chunk
    plain = replace(
        request, group_by_document=False, collapse_duplicates=False, recency=0.0, rerank=False,
    )  # fmt: skip
    with tenant_scope(actor.tenant_id):
        legs = {} if request.mode is Mode.FILENAME else _standings(request, query, chunk)
        if request.mode is not Mode.FILENAME:
            words = query.words.for_bases([chunk.knowledge_base_id])
            checks = [*checks, check_words(request.query, words, chunk)]
    findings = Findings(
        request=request,
        asked=asked,
        # Those before the offset may stand for the passage too.
        hits=[*_results(actor, request, request.offset), *asked.hits],
        chunk=chunk,
        rank=None if returned is None else request.offset + returned + 1,
        fused_rank=_place(actor, plain, chunk.id),
        final_rank=_place(actor, request, chunk.id) if plain != request else None,
        legs=legs,
        words=next((check.detail for check in checks if check.check == "words"), ""),
    )
    verdict, more = decide(findings)
    return WhyNot(chunk.document, chunk, verdict, findings.rank, [*checks, *more], legs)


def _position(hits: Sequence[Hit], chunk_id: UUID | None, document_id: UUID) -> int | None:
    for number, hit in enumerate(hits):
        if hit.chunk.id == chunk_id or (chunk_id is None and hit.chunk.document_id == document_id):
            return number
    return None


def _place(actor: Actor, request: SearchRequest, chunk_id: UUID) -> int | None:
    """The rank of a passage among all that can be paged to."""
    ranked = enumerate(_results(actor, request, MAX_WINDOW), start=1)
    return next((rank for rank, hit in ranked if hit.chunk.id == chunk_id), None)


def _results(actor: Actor, request: SearchRequest, most: int) -> Iterator[Hit]:
    """The first results whatever the offset, page by page as far as they are looked at."""
    for offset in range(0, most, MAX_LIMIT):
        limit = min(MAX_LIMIT, most - offset)
        hits = search(actor, replace(request, offset=offset, limit=limit)).hits
        yield from hits
        if len(hits) < limit:
            return


def _standings(request: SearchRequest, query: _Query, chunk: Chunk) -> dict[str, Standing]:
    """Rank and score of the passage in each leg that takes part and gives it a score."""
    legs = {}
    searchable = query.searchable
    weights = query.words.for_bases([chunk.knowledge_base_id]).weights
    if request.strategy is not Strategy.SEMANTIC and weights:
        value = score_of(searchable, chunk.id, by_words(weights))
        if value:
            lexical = _lexical_parts(query)
            needed = least_taken([(part, own, None) for part, own in lexical], request.depth)
            ranked = [(part, by_words(own)) for part, own in lexical if own]
            legs["lexical"] = standing(ranked, chunk.id, value, needed)
    model = chunk.knowledge_base.embedding_model
    if model in query.vectors:
        parts = [
            (searchable.within(part.base_ids), Vector(query.vectors[model], part.vector_field))
            for part in divide(searchable.scope.bases, exactly=True)
            if part.model == model
        ]
        own = Vector(query.vectors[model], chunk.knowledge_base.embedding_field)
        value = score_of(searchable, chunk.id, by_meaning(own))
        if value is not None:
            needed = least_taken([(part, {}, vector) for part, vector in parts], request.depth)
            scored = [(part, by_meaning(vector)) for part, vector in parts]
            legs[_leg_name(query, model)] = standing(scored, chunk.id, value, needed)
    return legs


def _lexical_parts(query: _Query) -> list[tuple[Searchable, Mapping[int, float]]]:
    """The bases with what the words weigh there: not alike where some have synonyms of their own."""
    searchable, words = query.searchable, query.words
    if not words.own:
        return [(searchable, words.weights)]
    parts = divide(searchable.scope.bases, exactly=True, alone=words.own)
    return [
        (searchable.within(part.base_ids), words.for_bases(part.base_ids).weights) for part in parts
    ]


def _leg_name(query: _Query, model: str) -> str:
    return "vector" if model == min(query.vectors) else f"vector {model}"
