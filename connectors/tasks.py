"""Celery tasks: each takes ids and calls one service."""

from __future__ import annotations

import logging
import random
import threading
from typing import Any
from uuid import UUID

from celery import Task, shared_task
from django.conf import settings

from config.errors import AppError
from connectors.models import SyncRun
from connectors.services import runs
from connectors.services.engine import run_sync

logger = logging.getLogger(__name__)

_JITTER_S = 30.0  # spread over this what is scheduled for the same minute
# The worker has more threads than this: a sync may last for hours, and webhooks must not wait for it.
_slots = threading.BoundedSemaphore(settings.GROUNDWORK_SYNCS)


class SyncTask(Task[Any, None]):
    """A task about one run: an unforeseen error is logged and shown on it."""

    def on_failure(self, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Called by Celery."""
        logger.error("Task %s failed", task_id, exc_info=exc)
        message = "Something went wrong on our side; see the sync worker's log. Start it again."
        runs.fail_run(UUID(args[0]), UUID(args[1]), AppError(message))


@shared_task(base=SyncTask, name="connectors.sync")
def sync_task(tenant_id: str, run_id: str) -> None:
    """Work on one run; come back later when its source is busy. While no slot is free the run stays queued:
    `resume_abandoned` brings it again."""
    if not _slots.acquire(blocking=False):
        return
    try:
        wait_s = run_sync(UUID(tenant_id), UUID(run_id))
    finally:
        _slots.release()
    if wait_s is not None:
        sync_task.apply_async((tenant_id, run_id), countdown=wait_s + random.uniform(0, 5))  # noqa: S311


@shared_task(name="connectors.scheduled_sync")
def scheduled_sync_task(tenant_id: str, connection_id: str, kind: str) -> None:
    """What a schedule calls: a run a moment later, not all at the same second."""
    start_scheduled_task.apply_async(
        (tenant_id, connection_id, kind),
        countdown=random.uniform(0, _JITTER_S),  # noqa: S311
    )


@shared_task(name="connectors.start_scheduled")
def start_scheduled_task(tenant_id: str, connection_id: str, kind: str) -> None:
    """Queue a run."""
    runs.start_unattended(
        UUID(tenant_id), UUID(connection_id), kind=SyncRun.Kind(kind), trigger="schedule"
    )


@shared_task(name="connectors.resume_abandoned")
def resume_abandoned_task() -> None:
    """Queue again what a crash has lost. A run that is queued twice is claimed once."""
    for tenant_id, run_id in runs.abandoned_runs():
        sync_task.delay(str(tenant_id), str(run_id))


def resume_unfinished_runs() -> None:
    """Queue all unfinished runs: only where no worker runs yet."""
    for tenant_id, run_id in runs.unfinished_runs():
        runs.release_run(tenant_id, run_id)
        sync_task.delay(str(tenant_id), str(run_id))
