"""Who works on a run. Only the holder of its lease may commit; a lease ends when its heartbeat stops."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError, connections
from django.db.models import F, Q
from django.utils import timezone

from accounts.tenancy import new_id, tenant_scope
from connectors.models import SyncRun

logger = logging.getLogger(__name__)

STALE_AFTER = timedelta(seconds=60)
_BEAT_EVERY_S = 3.0


class RunCancelledError(Exception):
    """Somebody has asked for the end of the run."""


class LeaseLostError(Exception):
    """Another worker has taken over, or the run is gone: nothing more may be written."""


class Lease:
    """The right to work on one run."""

    def __init__(self, tenant_id: UUID, run_id: UUID, token: UUID) -> None:
        self.tenant_id = tenant_id
        self.run_id = run_id
        self.token = token
        self._cancelled = threading.Event()
        self._lost = threading.Event()
        self._ended = threading.Event()

    @classmethod
    def claim(cls, tenant_id: UUID, run_id: UUID) -> Lease | None:
        """Take a run that waits, or whose worker gives no sign of life. None when someone else has it."""
        now, token = timezone.now(), new_id()
        waits = Q(status=SyncRun.Status.QUEUED) & (Q(not_before=None) | Q(not_before__lte=now))
        abandoned = Q(status=SyncRun.Status.RUNNING, heartbeat_at__lt=now - STALE_AFTER)
        with tenant_scope(tenant_id):
            won = SyncRun.objects.filter(waits | abandoned, id=run_id).update(
                status=SyncRun.Status.RUNNING,
                lease=token,
                heartbeat_at=now,
                attempts=F("attempts") + 1,
            )
            SyncRun.objects.filter(id=run_id, lease=token, started_at=None).update(started_at=now)
        return cls(tenant_id, run_id, token) if won else None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Give signs of life until the end of the block."""
        thread = threading.Thread(target=self._beat, name=f"sync-{self.run_id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(timeout=_BEAT_EVERY_S)

    def check(self) -> None:
        """Raise `RunCancelledError` or `LeaseLostError` when the work has to end."""
        if self._lost.is_set():
            raise LeaseLostError
        if self._cancelled.is_set():
            raise RunCancelledError

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the moment at which the work has to end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.25))
        self.check()

    def hold(self) -> SyncRun:
        """The run, locked until the end of the present transaction. Raises `LeaseLostError`."""
        run = SyncRun.objects.select_for_update().filter(
            id=self.run_id, lease=self.token, status=SyncRun.Status.RUNNING
        )
        found: SyncRun | None = run.first()
        if found is None:
            self._lost.set()
            raise LeaseLostError
        if found.cancel_requested:
            self._cancelled.set()
        return found

    def _beat(self) -> None:
        try:
            while not self._ended.wait(_BEAT_EVERY_S):
                self._beat_once()
        finally:
            connections.close_all()

    def _beat_once(self) -> None:
        try:
            with tenant_scope(self.tenant_id):
                mine = SyncRun.objects.filter(
                    id=self.run_id, lease=self.token, status=SyncRun.Status.RUNNING
                )
                if not mine.update(heartbeat_at=timezone.now()):
                    self._lost.set()
                elif mine.filter(cancel_requested=True).exists():
                    self._cancelled.set()
        except DatabaseError:  # the next beat may do better; without any the lease runs out
            logger.warning("A heartbeat of sync run %s failed", self.run_id, exc_info=True)
