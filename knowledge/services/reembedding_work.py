"""The work of a re-embedding, piece by piece.

Each piece commits. It may die anywhere and be repeated: a piece skips what is done, claims are made
under the lock of the job's row, and nothing is written for a job that has been cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import partial
from uuid import UUID

from django.db import OperationalError
from django.utils import timezone

from accounts.tenancy import tenant_scope
from config.errors import AppError, RateLimitedError, TransientError
from knowledge.models import Chunk, KnowledgeBase, ReEmbedding
from knowledge.services.lexical_index import text_in_context
from knowledge.services.reembedding_lanes import open_lanes
from knowledge.services.reembedding_switch import count_vectors, is_complete, switch
from knowledge.services.spare_index import drop_spare_index, prepare_spare_index
from knowledge.services.vector_space import empty_some, lacking, write_vectors, yield_to_others
from providers.base import Embedder, Vectors
from providers.registry import embedder_for

SLICE = 64  # chunks: some seconds of work, so that documents need not wait long for their turn
_EMPTIED_AT_ONCE = 1000  # chunks
_MAX_ATTEMPTS = 64  # failed pieces in a row: about an hour
_LONGEST_WAIT_S = 256
_LONGEST_ASKED_WAIT_S = 3600
_BUSY_WAIT_S = 2.0
_INDEX_WAIT_S = 15.0
_STORE_ATTEMPTS = 20
_STALE_AFTER = timedelta(seconds=90)
_STALE_INDEX_AFTER = timedelta(minutes=30)  # building an index gives no sign of life

_Status = ReEmbedding.Status


class _Step(Enum):
    NOTHING = "nothing"
    BEGIN = "begin"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class _Claim:
    """A range of chunk ids that one lane embeds."""

    job: ReEmbedding
    lane: str
    first: UUID
    last: UUID


def advance(tenant_id: UUID, job_id: UUID, lane: str) -> float | None:
    """Do the next piece of a lane. Returns in how many seconds to call again, None at the lane's end."""
    try:
        return _advance(tenant_id, job_id, lane)
    except (RateLimitedError, TransientError) as error:
        return _postpone(tenant_id, job_id, error)
    except AppError as error:
        fail_reembedding(tenant_id, job_id, error)
        return None
    except OperationalError:  # others are at the same rows
        return _BUSY_WAIT_S


def fail_reembedding(tenant_id: UUID, job_id: UUID, error: AppError) -> None:
    """Give up and say why. Starting the same change again goes on from here."""
    with tenant_scope(tenant_id):
        job = _lock(job_id)
        if job is None:
            return
        job.status, job.finished_at = _Status.FAILED, timezone.now()
        job.error = f"{job.to_model}: {error.message}"
        job.error_code = error.code
        job.lanes, job.claims = [], {}
        job.save()


def reopen_reembedding(tenant_id: UUID, job_id: UUID) -> None:
    """Queue the work anew whose workers are gone. Their claims are taken up first."""
    with tenant_scope(tenant_id):
        job = _lock(job_id)
        if job is not None:
            open_lanes(job)
            job.save()


def unfinished_reembeddings(*, only_stalled: bool) -> list[tuple[UUID, UUID]]:
    """Tenant and id of the changes that are not finished, or that no process seems to be at."""
    jobs = ReEmbedding.unscoped.filter(status__in=ReEmbedding.UNFINISHED)
    if only_stalled:
        now = timezone.now()
        building = jobs.filter(status=_Status.READY, heartbeat_at__lt=now - _STALE_INDEX_AFTER)
        jobs = building | jobs.filter(heartbeat_at__lt=now - _STALE_AFTER).exclude(
            status=_Status.READY
        )
    return list(jobs.order_by("id").values_list("tenant_id", "id"))


def _advance(tenant_id: UUID, job_id: UUID, lane: str) -> float | None:
    with tenant_scope(tenant_id):
        step = _next_step(job_id, lane)
    if isinstance(step, _Claim):
        return _embed(tenant_id, step)
    if step is _Step.BEGIN:
        _drop_index(tenant_id, job_id)
        return _begin(tenant_id, job_id, lane)
    if step is _Step.COMPLETE:
        return _complete(tenant_id, job_id, lane)
    return None


def _next_step(job_id: UUID, lane: str) -> _Step | _Claim:
    job = _lock(job_id, lane)
    if job is None:
        return _Step.NOTHING
    if job.status == _Status.READY:
        return _Step.COMPLETE
    if job.started_at is None:
        return _Step.BEGIN
    ids = _take(job, lane)
    if ids is None:
        return _Step.NOTHING if job.claims else _Step.COMPLETE
    job.claims[lane] = [str(ids[0]), str(ids[1])]
    job.save(update_fields=["claims", "cursor"])
    return _Claim(job, lane, *ids)


def _take(job: ReEmbedding, lane: str) -> tuple[UUID, UUID] | None:
    """The first and last id of the next piece: one that was left unfinished, or a new one."""
    for owner in [lane, *(name for name in job.claims if name not in job.lanes)]:
        if owner in job.claims:
            first, last = job.claims.pop(owner)
            return UUID(first), UUID(last)
    chunks = lacking(job.knowledge_base_id, job.field).order_by("id")
    if job.cursor is not None:
        chunks = chunks.filter(id__gt=job.cursor)
    ids = list(chunks.values_list("id", flat=True)[:SLICE])
    if not ids:
        return None
    job.cursor = ids[-1]
    return ids[0], ids[-1]


def _drop_index(tenant_id: UUID, job_id: UUID) -> None:
    with tenant_scope(tenant_id):
        job = ReEmbedding.objects.filter(id=job_id, is_emptied=False).first()
    if job is not None:
        drop_spare_index(tenant_id, job.knowledge_base_id, job.field)


def _begin(tenant_id: UUID, job_id: UUID, lane: str) -> float | None:
    """Empty the field of what it held before, a part at a time, then open the lanes."""
    with tenant_scope(tenant_id):
        yield_to_others()
        job = _lock(job_id, lane)
        if job is None:
            return None
        job.status, job.heartbeat_at = _Status.RUNNING, timezone.now()
        if not job.is_emptied:
            job.cursor = empty_some(job.knowledge_base_id, job.field, job.cursor, _EMPTIED_AT_ONCE)
            job.is_emptied = job.cursor is None
            job.save()
            return 0
        _start_filling(job)
        return None


def _start_filling(job: ReEmbedding) -> None:
    count_vectors(job)
    job.reused, job.started_at = job.done, timezone.now()
    open_lanes(job)
    job.save()
    KnowledgeBase.objects.filter(id=job.knowledge_base_id).update(spare_model=job.to_model)


def _embed(tenant_id: UUID, claim: _Claim) -> float | None:
    embedder = embedder_for(claim.job.to_model)
    while chunks := _next_batch(tenant_id, claim, embedder.batch_size):
        texts = [
            text_in_context(chunk.document.title, chunk.heading_path, chunk.content)
            for chunk in chunks
        ]
        fitting = _fit_all(embedder, texts)
        shortened = sum(old != new for old, new in zip(texts, fitting, strict=True))
        vectors = embedder.embed_passages(fitting)
        if not _persist(partial(_store, tenant_id, claim, chunks, vectors, shortened)):
            return None
    with tenant_scope(tenant_id):
        job = _lock(claim.job.id)
        if job is not None:
            job.claims.pop(claim.lane, None)
            job.save(update_fields=["claims"])
    return 0


def _fit_all(embedder: Embedder, texts: list[str]) -> list[str]:
    """The texts, each cut at its end to what the model reads."""
    counts = embedder.count_tokens(texts)
    return [_fit(embedder, text, n) for text, n in zip(texts, counts, strict=True)]


def _fit(embedder: Embedder, text: str, tokens: int) -> str:
    while tokens > embedder.max_tokens:
        text = text[: max(1, len(text) * embedder.max_tokens // (tokens + 1))]
        (tokens,) = embedder.count_tokens([text])
    return text


def _next_batch(tenant_id: UUID, claim: _Claim, most: int) -> list[Chunk]:
    with tenant_scope(tenant_id):
        chunks = lacking(claim.job.knowledge_base_id, claim.job.field)
        chunks = chunks.filter(id__gte=claim.first, id__lte=claim.last).select_related("document")
        chunks = chunks.only(
            "id", "tenant_id", "content", "heading_path", "edited_at",
            "document__title", "document__tenant_id",
        )  # fmt: skip
        return list(chunks.order_by("id")[:most])


def _persist(store: Callable[[], bool]) -> bool:
    """Keep computed vectors from being lost to a row that somebody else is at."""
    for _ in range(_STORE_ATTEMPTS - 1):
        try:
            return store()
        except OperationalError:
            continue
    return store()


def _store(
    tenant_id: UUID, claim: _Claim, chunks: list[Chunk], vectors: Vectors, shortened: int
) -> bool:
    """Write vectors; False if the job has ended meanwhile."""
    with tenant_scope(tenant_id):
        yield_to_others()
        job = _lock(claim.job.id)
        if job is None or job.status != _Status.RUNNING:
            return False
        job.done += write_vectors(job.field, chunks, vectors.tolist())
        job.shortened += shortened
        job.attempts, job.heartbeat_at = 0, timezone.now()
        job.save(update_fields=["done", "shortened", "attempts", "heartbeat_at"])
        return True


def _complete(tenant_id: UUID, job_id: UUID, lane: str) -> float | None:
    with tenant_scope(tenant_id):
        job = _lock(job_id, lane)
        if job is None:
            return None
        if job.status == _Status.RUNNING:
            if not is_complete(job.knowledge_base_id, job.field):
                job.cursor = None
                open_lanes(job)
                job.save()
                return None
            count_vectors(job)
        job.status, job.lanes, job.heartbeat_at = _Status.READY, [lane], timezone.now()
        job.save()
    if not prepare_spare_index(tenant_id, job.knowledge_base_id, job.field):
        return _INDEX_WAIT_S
    switch(tenant_id, job_id)
    return None


def _postpone(
    tenant_id: UUID, job_id: UUID, error: RateLimitedError | TransientError
) -> float | None:
    """Count a failure that may pass; give up after very many in a row."""
    with tenant_scope(tenant_id):
        job = _lock(job_id)
        if job is None:
            return None
        job.attempts += 1
        wait_s: float = min(2.0**job.attempts, _LONGEST_WAIT_S)
        if isinstance(error, RateLimitedError) and error.retry_after_s is not None:
            wait_s = min(error.retry_after_s, _LONGEST_ASKED_WAIT_S)
        job.heartbeat_at = timezone.now() + timedelta(seconds=wait_s)
        job.save(update_fields=["attempts", "heartbeat_at"])
    if job.attempts < _MAX_ATTEMPTS:
        return wait_s
    fail_reembedding(tenant_id, job_id, error)
    return None


def _lock(job_id: UUID, lane: str | None = None) -> ReEmbedding | None:
    """The unfinished job; with a lane, only if that lane is still one of its own."""
    jobs = ReEmbedding.objects.select_for_update()
    job: ReEmbedding | None = jobs.filter(id=job_id, status__in=ReEmbedding.UNFINISHED).first()
    return None if job is None or (lane is not None and lane not in job.lanes) else job
