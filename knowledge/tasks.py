"""Celery tasks: each takes ids and calls one service."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from celery import Task, shared_task

from accounts.models import Tenant
from accounts.tenancy import tenant_scope
from config.celery import app
from config.errors import AppError, RateLimitedError, TransientError
from knowledge.models import KnowledgeBase
from knowledge.services import base_indexes, ingest, reembedding_work
from knowledge.services.lexical_index import reweigh_base
from knowledge.services.orphans import remove_orphans
from knowledge.services.spare_vectors import bases_with_old_vectors, remove_spare_vectors
from knowledge.services.statistics import fold_statistics

logger = logging.getLogger(__name__)
_MAX_RETRIES = 8


class DocumentTask(Task[Any, None]):
    """A task about one document: an unforeseen error is logged and shown on the document."""

    def on_failure(self, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Called by Celery after the last try."""
        logger.error("Task %s failed", task_id, exc_info=exc)
        message = "Something went wrong on our side while indexing this; see the worker's log. Try to reprocess it."
        known = exc if isinstance(exc, AppError) else AppError(message)
        ingest.fail_document(UUID(args[0]), UUID(args[1]), known)


@shared_task(base=DocumentTask, name="knowledge.process_document")
def process_document_task(tenant_id: str, document_id: str) -> None:
    """Read, cut and index one document by its words."""
    ingest.process_document(UUID(tenant_id), UUID(document_id))


@shared_task(base=DocumentTask, name="knowledge.embed_slice", bind=True, max_retries=_MAX_RETRIES)
def embed_slice_task(
    self: Task[Any, None], tenant_id: str, document_id: str, first: int, stop: int
) -> None:
    """Compute the vectors of some chunks; waits and tries again when the provider is busy."""
    try:
        ingest.embed_slice(UUID(tenant_id), UUID(document_id), first, stop)
    except RateLimitedError as error:
        raise self.retry(exc=error, countdown=error.retry_after_s or 30) from error
    except TransientError as error:
        raise self.retry(exc=error, countdown=2 ** min(self.request.retries + 1, 8)) from error


def schedule_slices(tenant_id: UUID, document_id: UUID) -> None:
    """Queue the missing vectors of a document, or finish it when none is missing."""
    slices = ingest.slices_of(tenant_id, document_id)
    for first, stop in slices:
        embed_slice_task.delay(str(tenant_id), str(document_id), first, stop)
    if not slices:
        ingest.finish_document(tenant_id, document_id)


@shared_task(name="knowledge.resume_stalled_documents")
def resume_stalled_documents() -> None:
    """Queue again what a crash has lost. Only when the queue is empty: otherwise it is merely waiting."""
    if _is_queue_waiting():
        return
    for tenant_id, document_id, stage in ingest.stalled_documents():
        _resume(tenant_id, document_id, stage)


def resume_unfinished_documents() -> None:
    """Queue all unfinished work: only where no worker runs yet. A task that is queued twice finds its
    work claimed or done."""
    for tenant_id, document_id, stage in ingest.unfinished_documents():
        _resume(tenant_id, document_id, stage)


def _resume(tenant_id: UUID, document_id: UUID, stage: str) -> None:
    if stage == "embedding":
        schedule_slices(tenant_id, document_id)
    else:
        ingest.release_stalled(tenant_id, document_id)
        process_document_task.delay(str(tenant_id), str(document_id))


class ReEmbeddingTask(Task[Any, None]):
    """A task about one change of model: an unforeseen error is logged and shown on it."""

    def on_failure(self, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Called by Celery."""
        logger.error("Task %s failed", task_id, exc_info=exc)
        message = "Something went wrong on our side; see the worker's log. Start the change again."
        error = AppError(message)
        reembedding_work.fail_reembedding(UUID(args[0]), UUID(args[1]), error)


@shared_task(base=ReEmbeddingTask, name="knowledge.reembed")
def reembed_task(tenant_id: str, job_id: str, lane: str) -> None:
    """Do one piece of a change of model, then queue the next one behind what waits."""
    wait_s = reembedding_work.advance(UUID(tenant_id), UUID(job_id), lane)
    if wait_s is not None:
        reembed_task.apply_async((tenant_id, job_id, lane), countdown=wait_s)


@shared_task(name="knowledge.resume_stalled_reembeddings")
def resume_stalled_reembeddings() -> None:
    """Queue again what a crash has lost. Only when the queue is empty: otherwise it is merely waiting."""
    if not _is_queue_waiting():
        _resume_reembeddings(only_stalled=True)


def resume_unfinished_reembeddings() -> None:
    """Queue all unfinished changes of model: only where no worker runs yet."""
    _resume_reembeddings(only_stalled=False)


def _resume_reembeddings(*, only_stalled: bool) -> None:
    for tenant_id, job_id in reembedding_work.unfinished_reembeddings(only_stalled=only_stalled):
        reembedding_work.reopen_reembedding(tenant_id, job_id)


@shared_task(name="knowledge.discard_spare_vectors")
def discard_spare_vectors_task(tenant_id: str, base_id: str) -> None:
    """Remove the vectors that search of one base does not read."""
    remove_spare_vectors(UUID(tenant_id), UUID(base_id))


@shared_task(name="knowledge.discard_old_vectors")
def discard_old_vectors() -> None:
    """Remove the vectors of former models that nobody has rolled back to."""
    for tenant_id, base_id in bases_with_old_vectors():
        remove_spare_vectors(tenant_id, base_id)


@shared_task(name="knowledge.remove_orphans")
def remove_orphans_task() -> None:
    """Remove stored files that no document owns."""
    remove_orphans()


def _is_queue_waiting() -> bool:
    with app.connection_for_read() as connection:
        try:
            return connection.SimpleQueue(app.conf.task_default_queue).qsize() > 0
        except connection.channel_errors:
            return False  # the broker forgets a queue that has been emptied


@shared_task(name="knowledge.compact_statistics")
def compact_statistics() -> None:
    """Fold the statistics ledgers and renew BM25 weights that have drifted."""
    for tenant_id in Tenant.objects.values_list("id", flat=True):
        with tenant_scope(tenant_id):
            for base in KnowledgeBase.objects.all():
                fold_statistics(base.id)
                reweigh_base(base)


@shared_task(name="knowledge.maintain_indexes")
def maintain_indexes_task() -> None:
    """Give large bases their own indexes, and remove those that are no longer needed."""
    for tenant_id, base_id in base_indexes.bases_out_of_line():
        base_indexes.maintain_indexes(tenant_id, base_id)
    base_indexes.drop_orphans()
