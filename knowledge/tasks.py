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
from knowledge.services import ingest
from knowledge.services.lexical_index import reweigh_base
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
