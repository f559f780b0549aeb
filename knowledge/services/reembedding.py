"""Changing the embedding model of a base: what people ask for. The work itself is in
`reembedding_work.py`, the switch in `reembedding_switch.py`.

A chunk has two vector fields. Search reads one of them; a change of model fills the other one in the
background and then makes it the one that search reads. The old vectors stay for a while, so that the
change can be rolled back.
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from config.errors import ConflictError, FieldError, InvalidInputError, NotFoundError, RemoteError
from knowledge.models import Chunk, KnowledgeBase, ReEmbedding
from knowledge.services.reembedding_lanes import open_lanes
from knowledge.services.reembedding_switch import is_complete, switch_base
from knowledge.services.spare_vectors import KEPT_FOR
from knowledge.services.vector_space import lock_space
from providers.registry import available_models, embedder_for

_RUNNING = (
    "The embedding model of this knowledge base is being changed already. Wait for that, or cancel "
    "it first."
)


def start_reembedding(*, actor: Actor, base: KnowledgeBase, model: str) -> ReEmbedding:
    """Begin to change the model; vectors that an earlier try has left are used again.

    Passages that are too long for the model are not cut anew: their vectors stand for what fits, and
    the job counts them. Raises `InvalidInputError` for a model that is not there, `RemoteError` for one
    that does not answer, `ConflictError` while another change is running.
    """
    actor.require(Action.WRITE)
    if _is_changing(base):
        raise ConflictError(_RUNNING)
    _require_usable(base, model)
    base = _lock(base)
    job = ReEmbedding(
        tenant_id=base.tenant_id,
        knowledge_base=base,
        from_model=base.embedding_model,
        to_model=model,
        field=base.spare_field,
        is_emptied=model == base.spare_model or base.spare_since is None,
        started_by=actor.label[:300],
    )
    open_lanes(job)
    try:
        with transaction.atomic():
            job.save()
    except IntegrityError as error:
        raise ConflictError(_RUNNING) from error
    # Until the field is known to hold nothing else it is nobody's.
    base.spare_model, base.spare_since = model if job.is_emptied else "", timezone.now()
    base.save(update_fields=["spare_model", "spare_since"])
    _record(actor, base, "knowledge_base.model_change_started", job)
    return job


def cancel_reembedding(*, actor: Actor, base: KnowledgeBase) -> ReEmbedding:
    """Stop the change that is running. Search goes on as before; the vectors computed so far are used
    if the same change is started again within `KEPT_FOR`. Raises `ConflictError` if none is running."""
    actor.require(Action.WRITE)
    jobs = ReEmbedding.objects.filter(knowledge_base=base, status__in=ReEmbedding.UNFINISHED)
    job: ReEmbedding | None = jobs.select_for_update().first()
    if job is None:
        raise ConflictError("No change of the embedding model is running.")
    job.status, job.finished_at = ReEmbedding.Status.CANCELLED, timezone.now()
    job.lanes, job.claims = [], {}
    job.save(update_fields=["status", "finished_at", "lanes", "claims"])
    _record(actor, base, "knowledge_base.model_change_cancelled", job)
    return job


def roll_back(*, actor: Actor, base: KnowledgeBase) -> ReEmbedding:
    """Go back to the model before the last change, at once if none of its vectors is missing, else in
    the background. Raises `ConflictError` when they have been discarded."""
    actor.require(Action.WRITE)
    model = model_before(base)
    if not model:
        raise ConflictError(
            "There is nothing to roll back to: the vectors of an earlier model are not kept (any "
            "more). Change the model instead; all vectors are computed then."
        )
    job = start_reembedding(actor=actor, base=base, model=model)
    lock_space(base.id)
    if is_complete(base.id, job.field):
        switch_base(_lock(base), job)
    base.refresh_from_db()
    return job


def discard_spare_vectors(*, actor: Actor, base: KnowledgeBase) -> None:
    """Give up the vectors that search does not read, and with them rolling back; workers remove them.
    Raises `ConflictError` while a change is running."""
    from knowledge.tasks import discard_spare_vectors_task  # noqa: PLC0415 - tasks call services

    actor.require(Action.WRITE)
    base = _lock(base)
    if _is_changing(base):
        raise ConflictError(_RUNNING)
    record_event(
        actor, "knowledge_base.old_vectors_discarded", target=base.name, target_id=base.id,
        detail={"model": base.spare_model},
    )  # fmt: skip
    base.spare_model = ""
    base.save(update_fields=["spare_model"])
    tenant_id, base_id = str(base.tenant_id), str(base.id)
    transaction.on_commit(lambda: discard_spare_vectors_task.delay(tenant_id, base_id))


def find_reembedding(base: KnowledgeBase) -> ReEmbedding | None:
    """The change that is running, else the last one."""
    job: ReEmbedding | None = (
        ReEmbedding.objects.filter(knowledge_base=base).order_by("-id").first()
    )
    return job


def model_before(base: KnowledgeBase) -> str:
    """The model to which the base can be rolled back; empty if there is none."""
    jobs = ReEmbedding.objects.filter(knowledge_base=base, status=ReEmbedding.Status.SWITCHED)
    last = jobs.order_by("-id").first()
    if last is None or not base.spare_model:
        return ""
    is_last = (last.from_model, last.to_model) == (base.spare_model, base.embedding_model)
    return base.spare_model if is_last and base.spare_model in available_models() else ""


def kept_until(base: KnowledgeBase) -> datetime | None:
    """When the vectors that search does not read are discarded; None if there are none."""
    return base.spare_since + KEPT_FOR if base.spare_since else None


def count_too_long(base: KnowledgeBase, model: str) -> int:
    """About how many passages are longer than a model reads, by the lengths taken when they were cut."""
    most = embedder_for(model).max_tokens
    chunks = Chunk.objects.filter(knowledge_base=base, live=True, token_count__gt=most)
    return int(chunks.count())


def _is_changing(base: KnowledgeBase) -> bool:
    jobs = ReEmbedding.objects.filter(knowledge_base=base, status__in=ReEmbedding.UNFINISHED)
    return bool(jobs.exists())


def _require_usable(base: KnowledgeBase, model: str) -> None:
    """Fail now rather than in the background: the model is there, another one, and answers."""
    if model not in available_models():
        names = ", ".join(available_models())
        raise InvalidInputError(
            f"There is no embedding model {model}.",
            [FieldError("embedding_model", f"Choose one of: {names}.")],
        )
    if model == base.embedding_model:
        raise InvalidInputError(
            f"The knowledge base uses {model} already.",
            [FieldError("embedding_model", "Choose another model.")],
        )
    try:
        embedder_for(model).embed_queries(["Does it answer?"])
    except RemoteError as error:
        raise type(error)(f"The embedding model {model} cannot be used: {error.message}") from error


def _lock(base: KnowledgeBase) -> KnowledgeBase:
    locked: KnowledgeBase | None = (
        KnowledgeBase.objects.select_for_update(no_key=True).filter(id=base.id).first()
    )
    if locked is None:
        raise NotFoundError
    return locked


def _record(actor: Actor, base: KnowledgeBase, action: str, job: ReEmbedding) -> None:
    record_event(
        actor, action, target=base.name, target_id=base.id,
        detail={"from": job.from_model, "to": job.to_model, "status": job.status},
    )  # fmt: skip
