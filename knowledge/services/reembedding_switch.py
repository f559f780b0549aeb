"""The moment at which search goes over to the other vectors, in one transaction."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count
from django.utils import timezone

from accounts.access import Actor
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from knowledge.models import Chunk, Document, KnowledgeBase, ReEmbedding
from knowledge.services.reembedding_lanes import open_lanes
from knowledge.services.vector_space import lacking, lock_space

_UNFINISHED = [Document.Status.PENDING, Document.Status.PROCESSING]


def is_complete(base_id: UUID, field: str) -> bool:
    """Whether every passage has a vector there, save those of documents that are being indexed for the
    first time: they get theirs like the rest of such a document."""
    waiting = lacking(base_id, field).filter(live=True)
    return not waiting.exclude(document__status__in=_UNFINISHED, document__indexed_at=None).exists()


def count_vectors(job: ReEmbedding) -> None:
    """Set the job's `total` and `done` by counting."""
    chunks = Chunk.objects.filter(knowledge_base_id=job.knowledge_base_id)
    counts = chunks.aggregate(total=Count("id"), done=Count(job.field))
    job.total, job.done = counts["total"], counts["done"]


def switch(tenant_id: UUID, job_id: UUID) -> None:
    """Switch if nothing is missing; what has come meanwhile is computed first."""
    with tenant_scope(tenant_id):
        bases = KnowledgeBase.objects.select_for_update(of=("self",), no_key=True)
        base = bases.filter(reembeddings__id=job_id).first()
        if base is None:
            return
        lock_space(base.id)
        ready = ReEmbedding.objects.filter(id=job_id, status=ReEmbedding.Status.READY)
        job = ready.select_for_update().first()
        if job is None:
            return
        if is_complete(base.id, job.field):
            switch_base(base, job)
            return
        job.status, job.cursor = ReEmbedding.Status.RUNNING, None
        open_lanes(job)
        job.save()


def switch_base(base: KnowledgeBase, job: ReEmbedding) -> None:
    """Let search read the job's vectors. The caller holds the locks of base, space and job."""
    now = timezone.now()
    if job.started_at is None:  # nothing had to be computed
        count_vectors(job)
        job.started_at, job.reused = now, job.done
    job.status, job.finished_at = ReEmbedding.Status.SWITCHED, now
    job.lanes, job.claims = [], {}
    _mark_rolled_back(base, job)
    job.save()
    base.spare_model, base.spare_since = base.embedding_model, now
    base.embedding_model, base.embedding_field = job.to_model, job.field
    base.save(update_fields=["spare_model", "spare_since", "embedding_model", "embedding_field"])
    _redirect_documents(base)
    record_event(
        Actor(base.tenant_id, job.started_by, frozenset()), "knowledge_base.model_changed",
        target=base.name, target_id=base.id, detail={"from": job.from_model, "to": job.to_model},
    )  # fmt: skip


def _mark_rolled_back(base: KnowledgeBase, job: ReEmbedding) -> None:
    switched = ReEmbedding.objects.filter(
        knowledge_base=base, status=ReEmbedding.Status.SWITCHED
    ).order_by("-id")
    last = switched.first()
    if last is not None and last.from_model == job.to_model:
        last.status = ReEmbedding.Status.ROLLED_BACK
        last.save(update_fields=["status"])


def _redirect_documents(base: KnowledgeBase) -> None:
    """Documents that are being indexed go on with the new model, from what there is of it."""
    from knowledge.tasks import schedule_slices  # noqa: PLC0415 - tasks call services

    with connection.cursor() as cursor:
        cursor.execute(_RECOUNT.format(field=base.embedding_field), [base.tenant_id, base.id])
    documents = Document.objects.filter(
        knowledge_base=base,
        status=Document.Status.PROCESSING,
        stage=Document.Stage.EMBEDDING,
    )
    for document_id in documents.values_list("id", flat=True):
        transaction.on_commit(partial(schedule_slices, base.tenant_id, document_id))


# Of a version that replaces another only the chunks that are not live yet count.
_RECOUNT = """
UPDATE knowledge_document d SET embedded_count = (
  SELECT count(c.{field}) FROM knowledge_chunk c
  WHERE c.tenant_id = d.tenant_id AND c.document_id = d.id
    AND c.live = (d.replaces_id IS NULL AND d.indexed_at IS NULL))
WHERE d.tenant_id = %s AND d.knowledge_base_id = %s
  AND d.status = 'processing' AND d.stage = 'embedding'
"""
