"""The lanes in which workers share a re-embedding.

A lane is a task that does one piece and queues itself again, so that other work of the queue gets its
turn between the pieces. Opening lanes anew ends those before: a task that was lost, or one that was
queued twice, does no harm.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from knowledge.models import ReEmbedding

_LEAST_LANES = 2


def open_lanes(job: ReEmbedding) -> None:
    """Name new lanes and queue them once the present transaction is committed. The caller saves the
    job. Until its vectors are being computed there is nothing to share, and one lane is enough."""
    is_shared = job.status == ReEmbedding.Status.RUNNING and job.started_at is not None
    number = max(_LEAST_LANES, settings.GROUNDWORK_WORKERS) if is_shared else 1
    job.lanes = [secrets.token_hex(4) for _ in range(number)]
    job.heartbeat_at = timezone.now()
    tenant_id, job_id, lanes = str(job.tenant_id), str(job.id), list(job.lanes)
    transaction.on_commit(lambda: _queue(tenant_id, job_id, lanes))


def _queue(tenant_id: str, job_id: str, lanes: list[str]) -> None:
    from knowledge.tasks import reembed_task  # noqa: PLC0415 - tasks call services

    for lane in lanes:
        reembed_task.apply_async((tenant_id, job_id, lane))
