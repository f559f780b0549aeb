"""Removing the vectors that search does not read, once nobody will roll back to them."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from django.db import OperationalError
from django.utils import timezone

from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase, ReEmbedding
from knowledge.services.spare_index import drop_spare_index
from knowledge.services.vector_space import empty_some, yield_to_others

KEPT_FOR = timedelta(days=7)

_EMPTIED_AT_ONCE = 1000  # chunks
_BUSY_WAIT_S = 1.0
_MAX_ATTEMPTS = 60


def bases_with_old_vectors() -> list[tuple[UUID, UUID]]:
    """Tenant and id of the bases whose unread vectors have been kept for long enough."""
    bases = KnowledgeBase.unscoped.filter(spare_since__lt=timezone.now() - KEPT_FOR)
    return list(bases.order_by("id").values_list("tenant_id", "id"))


def remove_spare_vectors(tenant_id: UUID, base_id: UUID) -> None:
    """Empty the vector field that search does not read, a part at a time. Stops when a change of the
    model begins, which does with the field as it needs. What a crash leaves is removed the next day."""
    with tenant_scope(tenant_id):
        base = KnowledgeBase.objects.filter(id=base_id).first()
        if base is None or _is_changing(base):
            return
    drop_spare_index(tenant_id, base_id, base.spare_field)
    after: UUID | None = None
    failures = 0
    while failures < _MAX_ATTEMPTS:
        try:
            after = _remove_some(tenant_id, base_id, after)
        except OperationalError:  # others are at the same rows
            failures += 1
            time.sleep(_BUSY_WAIT_S)
            continue
        if after is None:
            return


def _remove_some(tenant_id: UUID, base_id: UUID, after: UUID | None) -> UUID | None:
    with tenant_scope(tenant_id):
        yield_to_others()
        bases = KnowledgeBase.objects.select_for_update(no_key=True)
        base = bases.filter(id=base_id).exclude(spare_since=None).first()
        if base is None or _is_changing(base):
            return None
        base.spare_model = ""  # from now on the field holds leftovers
        after = empty_some(base.id, base.spare_field, after, _EMPTIED_AT_ONCE)
        if after is None:
            base.spare_since = None
        base.save(update_fields=["spare_model", "spare_since"])
        return after


def _is_changing(base: KnowledgeBase) -> bool:
    jobs = ReEmbedding.objects.filter(knowledge_base=base, status__in=ReEmbedding.UNFINISHED)
    return jobs.exists()
