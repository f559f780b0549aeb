"""One run, from its lease to its end.

Events of the connector are collected into batches; a batch is committed when it is full, at every
checkpoint that follows something, and before a sweep. What ends the loop decides the state of the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from accounts.tenancy import tenant_scope
from config.errors import (
    AppError,
    CredentialsError,
    InvalidInputError,
    RateLimitedError,
    RemoteError,
    TransientError,
)
from connectors.base import (
    Checkpoint,
    Complete,
    Connector,
    Deletion,
    Event,
    Failure,
    Memberships,
    Notice,
    Record,
    Refetch,
)
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services import capture
from connectors.services.batch import Batch
from connectors.services.deletions import sweep, sweep_left_scopes
from connectors.services.lease import Lease, LeaseLostError, RunCancelledError
from connectors.services.opening import Patience, open_connector
from connectors.services.outcomes import finish_run, note_warning, postpone_run
from connectors.services.principals import replace_memberships

logger = logging.getLogger(__name__)

_MOST_ATTEMPTS = 8  # of a run that is put back because its source is busy or down
_MOST_DEATHS = 20  # of workers at the same place, which then is what kills them
_LONGEST_WAIT_S = 3600.0
_MOST_RETRIED = 500  # failed items that a run takes along

Status, Kind = SyncRun.Status, SyncRun.Kind


@dataclass(frozen=True, slots=True)
class _Work:
    """What a run works with."""

    lease: Lease
    run: SyncRun
    connection: Connection
    connector: Connector[Any]


def run_sync(tenant_id: UUID, run_id: UUID) -> float | None:
    """Work on a run until it ends. Returns in how many seconds it wants to be called again, None when it
    is over or someone else's. May be killed at any moment and called again."""
    lease = Lease.claim(tenant_id, run_id)
    if lease is None:
        return None
    with lease.kept():
        try:
            _work_off(lease)
        except RunCancelledError:
            finish_run(lease, Status.CANCELLED)
        except LeaseLostError:
            logger.info("Sync run %s is no longer ours", run_id)
        except CredentialsError as error:
            finish_run(lease, Status.FAILED, error)
        except (RateLimitedError, TransientError) as error:
            return _put_back(lease, error)
        except InvalidInputError as error:
            finish_run(lease, Status.SKIPPED, error)
        except AppError as error:
            finish_run(lease, Status.FAILED, error)
    return None


def _work_off(lease: Lease) -> None:
    with tenant_scope(lease.tenant_id):
        run = SyncRun.objects.select_related("connection__knowledge_base").get(id=lease.run_id)
        connection = run.connection
    if connection.status != Connection.Status.ACTIVE:
        raise InvalidInputError(f"The connection is not active. {connection.status_reason}".strip())
    if run.attempts > _MOST_DEATHS:
        raise AppError(
            f"The worker has ended {_MOST_DEATHS} times at the same place. See its log for why (memory?), "
            "then start the sync again."
        )
    connector = open_connector(connection, patience=Patience(lease.pause))
    work = _Work(lease, run, connection, connector)
    if isinstance(connector, Memberships) and run.kind in {Kind.INCREMENTAL, Kind.FULL}:
        _sync_memberships(work, connector)
    if _take(work, _events(work)) and run.from_start:
        sweep_left_scopes(lease, connection)
    finish_run(lease, Status.SUCCEEDED)


def _events(work: _Work) -> Iterator[Event]:
    kind = work.run.kind
    if kind == Kind.REPLAY:
        yield from capture.replay(work.connection)
    elif kind == Kind.RETRY:
        yield from _failed_again(work, due_only=False)
    else:
        yield from work.connector.pull(work.run.cursor)
        if kind == Kind.INCREMENTAL and isinstance(work.connector, Refetch):
            yield from _failed_again(work, due_only=True)


def _failed_again(work: _Work, *, due_only: bool) -> Iterator[Event]:
    """The failed items once more: singly where the source allows it, else out of a whole listing."""
    with tenant_scope(work.lease.tenant_id):
        items = SyncItem.objects.filter(
            connection=work.connection, status=SyncItem.Status.FAILED
        ).exclude(seen_run=work.run.id)
        if due_only:
            items = items.filter(next_retry_at__lte=timezone.now())
        ids = list(items.order_by("next_retry_at").values_list("external_id", flat=True))
    ids = ids[:_MOST_RETRIED] if due_only else ids
    if not ids:
        return
    if isinstance(work.connector, Refetch):
        yield from work.connector.fetch(ids)
        return
    wanted = set(ids)
    for event in work.connector.pull({}):
        if isinstance(event, Record | Failure | Deletion) and event.external_id in wanted:
            yield event


def _take(work: _Work, events: Iterable[Event]) -> bool:
    """Whether the connector has called any scope complete."""
    completes = False
    batch = Batch(
        lease=work.lease,
        connection=work.connection,
        base=work.connection.knowledge_base,
        connector=type(work.connector),
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )
    for event in events:
        work.lease.check()
        match event:
            case Record() | Failure() | Deletion():
                batch.add(event)
                if batch.is_full:
                    batch.commit()
            case Checkpoint(cursor):
                batch.commit(cursor)
            case Complete(scope):
                batch.commit()
                sweep(work.lease, work.connection, scope)
                completes = True
            case Notice(message):
                note_warning(work.lease, message)
    batch.commit()
    return completes


def _sync_memberships(work: _Work, connector: Memberships) -> None:
    """Those of before stay when they cannot be read: nobody gains by a failure, and nobody is locked out."""
    try:
        memberships = list(connector.memberships())
    except (CredentialsError, RateLimitedError, TransientError):
        raise
    except RemoteError as error:
        note_warning(work.lease, f"Group memberships were not updated. {error.message}")
        return
    with tenant_scope(work.lease.tenant_id):
        work.lease.hold()
        replace_memberships(work.connection, memberships)


def _put_back(lease: Lease, error: RateLimitedError | TransientError) -> float | None:
    """Let the run wait without a worker; give it up when it has waited often."""
    with tenant_scope(lease.tenant_id):
        attempts = SyncRun.objects.values_list("attempts", flat=True).get(id=lease.run_id)
    if attempts >= _MOST_ATTEMPTS:
        finish_run(lease, Status.FAILED, error)
        return None
    asked_s = error.retry_after_s if isinstance(error, RateLimitedError) else None
    wait_s = min(asked_s or 15.0 * 2.0**attempts, _LONGEST_WAIT_S)
    postpone_run(lease, timezone.now() + timedelta(seconds=wait_s), error)
    return wait_s
