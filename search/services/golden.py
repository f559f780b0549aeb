"""Saving, changing and checking golden queries: questions with the passage that they must find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from accounts.access import Action, Actor, row_by_id
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, FieldError, InvalidInputError
from knowledge.models import Chunk, Document, KnowledgeBase
from search.models import GoldenQuery, GoldenRun, GoldenStatus
from search.request import MAX_LIMIT, Strategy
from search.services.golden_check import Check, check_golden_query, golden_request
from search.services.golden_passage import Passage, normalize

MAX_PER_BASE = 200  # a run takes some seconds at most
MAX_QUOTE_CHARS = 20_000
EDITABLE = ("query", "strategy", "filter", "within", "quote", "enabled", "note")


@dataclass(frozen=True, slots=True)
class Tally:
    """The enabled golden queries of a base by what their last check found."""

    green: int = 0
    red: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.green + self.red + self.unknown


def visible_golden_queries(actor: Actor) -> QuerySet[GoldenQuery]:
    """Those of the bases this actor keeps. They quote documents, so they are not for mere readers."""
    actor.require(Action.WRITE)
    queries: QuerySet[GoldenQuery] = GoldenQuery.objects.select_related("knowledge_base")
    if actor.knowledge_base_ids is not None:
        queries = queries.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    return queries


def visible_golden_runs(actor: Actor) -> QuerySet[GoldenRun]:
    """The runs of those bases."""
    actor.require(Action.WRITE)
    runs: QuerySet[GoldenRun] = GoldenRun.objects.select_related("knowledge_base")
    if actor.knowledge_base_ids is not None:
        runs = runs.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    return runs


def access_golden_query(actor: Actor, reference: str | UUID) -> GoldenQuery:
    """A golden query by id. Raises `NotFoundError`."""
    return row_by_id(visible_golden_queries(actor), reference)


def access_golden_run(actor: Actor, reference: str | UUID) -> GoldenRun:
    """A run by id. Raises `NotFoundError`."""
    return row_by_id(visible_golden_runs(actor), reference)


def save_golden_query(*, actor: Actor, chunk: Chunk, query: str, **facts: Any) -> GoldenQuery:
    """Keep a question with the passage of a chunk that it must find; not checked yet.

    `facts` are of `EDITABLE`; without a quote the chunk's text is the quote. Raises
    `InvalidInputError`, or `ConflictError` where the base has this one already or `MAX_PER_BASE`.
    """
    actor.require(Action.WRITE)
    golden = GoldenQuery(
        knowledge_base=chunk.knowledge_base,
        query=query,
        document_id=chunk.document_id,
        document_title=str(chunk.document)[:500],
        heading=list(chunk.heading_path),
        ordinal=chunk.ordinal,
        created_by=actor.label[:300],
        **{"quote": chunk.content, **facts},
    )
    _validate(golden)
    if not Passage(golden.quote, "").is_quoted_from(chunk):
        raise _quote_error("This text does not stand in the chunk.")
    _require_new(golden)
    golden.save(force_insert=True)
    record_event(actor, "golden_query.saved", target=golden.query, target_id=golden.id)
    return golden


def golden_queries_for(actor: Actor, query: str) -> list[GoldenQuery]:
    """Those that ask this very question."""
    return list(visible_golden_queries(actor).filter(query=query))


def wants(golden: GoldenQuery, chunk: Chunk) -> bool:
    """Whether a chunk holds the passage that a golden query wants."""
    return chunk.document_id == golden.document_id and Passage(golden.quote, "").is_in(chunk)


def find_quoted_chunk(document: Document, quote: str) -> Chunk:
    """The first chunk of a document that holds a quote. Raises `InvalidInputError` if none does."""
    passage = Passage(quote, document.extracted_text)
    chunks = Chunk.objects.filter(document_id=document.id, live=True).order_by("ordinal")
    chunks = chunks.select_related("document", "knowledge_base")
    chunk: Chunk
    for chunk in chunks.defer("lexemes", "lexical_weights", "embedding", "embedding_alternate"):
        if normalize(quote) and passage.is_quoted_from(chunk):
            return chunk
    raise _quote_error("This text does not stand in the document.")


def change_golden_query(*, actor: Actor, golden: GoldenQuery, **fields: Any) -> GoldenQuery:
    """Change some of `EDITABLE`. Raises `InvalidInputError` as saving does."""
    actor.require(Action.WRITE)
    for name, value in fields.items():
        setattr(golden, name, value)
    _validate(golden)
    if "quote" in fields:
        document = Document.objects.filter(id=golden.document_id).first()
        if document is None:
            raise _quote_error("The document was deleted: save the question anew.")
        chunk = find_quoted_chunk(document, golden.quote)
        golden.heading, golden.ordinal = list(chunk.heading_path), chunk.ordinal
    golden.save(update_fields=[*fields, "heading", "ordinal", "updated_at"])
    record_event(
        actor, "golden_query.changed", target=golden.query, target_id=golden.id,
        detail={"fields": sorted(fields)},
    )  # fmt: skip
    return golden


def delete_golden_query(*, actor: Actor, golden: GoldenQuery) -> None:
    """Forget a golden query and its results."""
    actor.require(Action.WRITE)
    golden_id, query = golden.id, golden.query
    GoldenQuery.objects.filter(id=golden_id).delete()
    record_event(actor, "golden_query.deleted", target=query, target_id=golden_id)


def refresh_golden_query(golden: GoldenQuery) -> Check:
    """Check one golden query and keep what was found. Opens the tenant's scope itself."""
    check = check_golden_query(golden)
    with tenant_scope(golden.tenant_id):
        keep_check(golden, check)
    return check


def keep_check(golden: GoldenQuery, check: Check) -> None:
    """Write the newest check to its golden query. One that could not be judged leaves status and rank
    as they were: a provider that was down for a night turns nothing red."""
    golden.reason, golden.checked_at = check.reason, timezone.now()
    if check.status != GoldenStatus.UNKNOWN:
        golden.previous_rank = golden.rank
        golden.status, golden.rank = check.status, check.rank
    golden.save(update_fields=["status", "rank", "previous_rank", "reason", "checked_at"])


def golden_tallies() -> dict[UUID, Tally]:
    """Green, red and unknown of every base of the present tenant that has enabled golden queries."""
    counts = {
        status.value: Count("id", filter=Q(status=status)) for status in GoldenStatus
    }  # fmt: skip
    rows = GoldenQuery.objects.filter(enabled=True).order_by().values("knowledge_base_id")
    return {row.pop("knowledge_base_id"): Tally(**row) for row in rows.annotate(**counts)}


def golden_tally(base: KnowledgeBase) -> Tally:
    """The same of one base."""
    return golden_tallies().get(base.id, Tally())


def _validate(golden: GoldenQuery) -> None:
    errors = []
    if golden.strategy not in list(Strategy):
        errors.append(FieldError("strategy", f"One of {', '.join(Strategy)}."))
    if not 1 <= golden.within <= MAX_LIMIT:
        errors.append(FieldError("within", f"From 1 to {MAX_LIMIT}."))
    if not normalize(golden.quote) or len(golden.quote) > MAX_QUOTE_CHARS:
        errors.append(FieldError("quote", f"From 1 to {MAX_QUOTE_CHARS:,} characters."))
    if errors:
        raise InvalidInputError("The golden query cannot be saved.", errors)
    golden_request(golden, [])  # names faults of the query and the filter


def _require_new(golden: GoldenQuery) -> None:
    siblings = GoldenQuery.objects.filter(knowledge_base_id=golden.knowledge_base_id)
    if siblings.count() >= MAX_PER_BASE:
        raise ConflictError(f"A knowledge base keeps at most {MAX_PER_BASE} golden queries.")
    twins = siblings.filter(
        query=golden.query, strategy=golden.strategy, document_id=golden.document_id
    )
    if any((twin.quote, twin.filter) == (golden.quote, golden.filter) for twin in twins):
        raise ConflictError("This question is saved for this passage already.")


def _quote_error(message: str) -> InvalidInputError:
    return InvalidInputError("The wanted passage is not there.", [FieldError("quote", message)])
