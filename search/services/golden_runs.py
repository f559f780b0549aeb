"""Runs over the golden queries of a base: on demand, after the base has changed, and every night."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from accounts.access import Action, Actor, operator_actor
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import ConflictError
from knowledge.models import Chunk, Document, KnowledgeBase
from search.models import GoldenQuery, GoldenResult, GoldenRun, GoldenStatus
from search.services.golden import keep_check
from search.services.golden_check import DEPTH, Check, check_golden_query, require_searchable

KEPT_RUNS = 50  # of a base
MOVED_RANKS = 3  # from this on a result has moved
_ABANDONED = timedelta(minutes=30)  # a run that has not ended by then was cut off
_SNIPPET_CHARS = 300


@dataclass(frozen=True, slots=True)
class BaseState:
    """What decides how a base ranks: the model, when it was indexed and corrected, how much there is."""

    embedding_model: str
    embedding_field: str
    newest_indexed_at: datetime | None
    newest_edited_at: datetime | None
    document_count: int


def run_golden_queries(
    *, actor: Actor, base: KnowledgeBase, trigger: str = GoldenRun.Trigger.ON_DEMAND
) -> GoldenRun:
    """Check every enabled golden query of a base and keep what changed since the check before.

    Opens the tenant's scope itself. Raises `InvalidInputError` for an archived base, `ConflictError`
    where there is nothing to run.
    """
    actor.require(Action.WRITE)
    with tenant_scope(actor.tenant_id):
        require_searchable(base)
        queries = list(GoldenQuery.objects.filter(knowledge_base=base, enabled=True).order_by("id"))
        if not queries:
            raise ConflictError("This knowledge base has no golden queries to run.")
        run = _start(actor, base, trigger)
    for golden in queries:
        check = check_golden_query(golden)
        with tenant_scope(actor.tenant_id):
            _keep_result(run, golden.id, check)
    with tenant_scope(actor.tenant_id):
        _finish(run)
    return run


def state_of(base: KnowledgeBase) -> BaseState:
    """The present state of a base. Edits count in the documents that its golden queries want."""
    documents = Document.objects.filter(knowledge_base=base, replaces=None)
    wanted = GoldenQuery.objects.filter(knowledge_base=base).values("document_id")
    edited = Chunk.objects.filter(document_id__in=wanted).aggregate(newest=Max("edited_at"))
    return BaseState(
        embedding_model=base.embedding_model,
        embedding_field=base.embedding_field,
        newest_indexed_at=documents.aggregate(newest=Max("indexed_at"))["newest"],
        newest_edited_at=edited["newest"],
        document_count=documents.count(),
    )


def due_trigger(base: KnowledgeBase) -> GoldenRun.Trigger | None:
    """Why the golden queries of a base should run now; None while nothing has changed since the last
    run, a document is unfinished, or a run is under way. The first run keeps the state to compare with."""
    last = GoldenRun.objects.filter(knowledge_base=base).order_by("-started_at", "-id").first()
    if last and last.finished_at is None and timezone.now() - last.started_at < _ABANDONED:
        return None
    unfinished = [Document.Status.PENDING, Document.Status.PROCESSING]
    if Document.objects.filter(knowledge_base=base, status__in=unfinished).exists():
        return None
    if last is None:
        return GoldenRun.Trigger.SCHEDULE
    before, now = state_at(last), state_of(base)
    if before == now:
        return None
    before_vectors = (before.embedding_model, before.embedding_field)
    if before_vectors != (now.embedding_model, now.embedding_field):
        return GoldenRun.Trigger.MODEL_CHANGE
    return GoldenRun.Trigger.RE_INDEX


def state_at(run: GoldenRun) -> BaseState:
    """The state of the base that a run has kept."""
    return BaseState(
        run.embedding_model,
        run.embedding_field,
        run.newest_indexed_at,
        run.newest_edited_at,
        run.document_count,
    )


def run_before(run: GoldenRun) -> GoldenRun | None:
    """The run of the same base before this one."""
    earlier = GoldenRun.objects.filter(
        knowledge_base_id=run.knowledge_base_id, started_at__lt=run.started_at
    )
    found: GoldenRun | None = earlier.order_by("-started_at", "-id").first()
    return found


def results_of(run: GoldenRun) -> list[GoldenResult]:
    """What a run found: what changed first, then red before green."""
    change, status = GoldenResult.Change, GoldenStatus
    changes = [change.TURNED_RED, change.TURNED_GREEN, change.MOVED, change.NONE]
    statuses = [status.RED, status.UNKNOWN, status.GREEN]
    results = GoldenResult.objects.filter(run=run).select_related("golden_query")
    return sorted(
        results,
        key=lambda row: (
            changes.index(row.change),
            statuses.index(row.status),
            row.golden_query_id,
        ),
    )


def golden_bases() -> list[tuple[UUID, UUID]]:
    """Tenant and id of every base, in any tenant, that has enabled golden queries."""
    rows = GoldenQuery.unscoped.filter(enabled=True).order_by("tenant_id", "knowledge_base_id")
    return list(rows.values_list("tenant_id", "knowledge_base_id").distinct())


def due_runs() -> list[tuple[UUID, UUID, GoldenRun.Trigger]]:
    """Tenant, base and trigger of every run that is due because its base has changed."""
    due = []
    for tenant_id, base_id in golden_bases():
        with tenant_scope(tenant_id):
            base = _active_base(base_id)
            trigger = due_trigger(base) if base else None
        if trigger is not None:
            due.append((tenant_id, base_id, trigger))
    return due


def run_scheduled(tenant_id: UUID, base_id: UUID, trigger: str) -> GoldenRun | None:
    """The queued run of a base; None where the base is gone or archived, or another run has seen the
    change meanwhile."""
    with tenant_scope(tenant_id):
        base = _active_base(base_id)
        is_nightly = trigger == GoldenRun.Trigger.SCHEDULE
        if base is None or not (is_nightly or due_trigger(base)):
            return None
    return run_golden_queries(actor=operator_actor(tenant_id), base=base, trigger=trigger)


def _active_base(base_id: UUID) -> KnowledgeBase | None:
    active = KnowledgeBase.objects.filter(status=KnowledgeBase.Status.ACTIVE)
    found: KnowledgeBase | None = active.filter(id=base_id).first()
    return found


def _start(actor: Actor, base: KnowledgeBase, trigger: str) -> GoldenRun:
    state = state_of(base)
    run: GoldenRun = GoldenRun.objects.create(
        knowledge_base=base,
        trigger=trigger,
        started_by=actor.label[:300],
        embedding_model=state.embedding_model,
        embedding_field=state.embedding_field,
        newest_indexed_at=state.newest_indexed_at,
        newest_edited_at=state.newest_edited_at,
        document_count=state.document_count,
    )
    if trigger == GoldenRun.Trigger.ON_DEMAND:
        record_event(actor, "golden_queries.run", target=base.name, target_id=base.id)
    return run


def _keep_result(run: GoldenRun, golden_id: UUID, check: Check) -> None:
    golden = GoldenQuery.objects.select_for_update().filter(id=golden_id).first()
    if golden is None:  # deleted meanwhile
        return
    first = check.first.chunk if check.first else None
    GoldenResult.objects.create(
        run=run,
        golden_query=golden,
        status=check.status,
        rank=check.rank,
        previous_status=golden.status,
        previous_rank=golden.rank,
        reason=check.reason,
        change=_change(golden, check),
        first_chunk_id=first.id if first else None,
        first_title=str(first.document)[:500] if first else "",
        first_snippet=" ".join(first.content.split())[:_SNIPPET_CHARS] if first else "",
    )
    keep_check(golden, check)


def _change(golden: GoldenQuery, check: Check) -> GoldenResult.Change:
    if GoldenStatus.UNKNOWN in {check.status, golden.status}:
        return GoldenResult.Change.NONE
    if check.status != golden.status:
        turned_red = check.status == GoldenStatus.RED
        return GoldenResult.Change.TURNED_RED if turned_red else GoldenResult.Change.TURNED_GREEN
    lost = DEPTH + 1
    moved = abs((check.rank or lost) - (golden.rank or lost)) >= MOVED_RANKS
    return GoldenResult.Change.MOVED if moved else GoldenResult.Change.NONE


def _finish(run: GoldenRun) -> None:
    statuses = list(GoldenResult.objects.filter(run=run).values_list("status", flat=True))
    run.green = statuses.count(GoldenStatus.GREEN)
    run.red = statuses.count(GoldenStatus.RED)
    run.unknown = statuses.count(GoldenStatus.UNKNOWN)
    run.finished_at = timezone.now()
    run.save(update_fields=["green", "red", "unknown", "finished_at"])
    runs = GoldenRun.objects.filter(knowledge_base_id=run.knowledge_base_id)
    newest = runs.order_by("-started_at", "-id").values_list("id", flat=True)
    runs.exclude(id__in=list(newest[:KEPT_RUNS])).delete()
