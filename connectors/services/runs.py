"""Starting, cancelling and retrying runs; finding those that nobody works on."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import AppError, ConflictError
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services.lease import STALE_AFTER
from connectors.services.outcomes import end_run
from connectors.services.queueing import WEBHOOK, queue_noticed_change, queue_run
from connectors.standing import has_index_error

_UNCLAIMED_AFTER = timedelta(seconds=60)

Status, Kind = SyncRun.Status, SyncRun.Kind


def start_run(
    *, actor: Actor, connection: Connection, kind: SyncRun.Kind = Kind.INCREMENTAL
) -> SyncRun:
    """Queue a run for a person or a program. Raises `ConflictError` while another one is unfinished, or
    when the connection is not active."""
    actor.require(Action.WRITE)
    require_active(connection)
    run = queue_run(connection, kind, trigger=actor.label)
    if run is None:
        raise ConflictError("A sync of this connection is going on. Wait for it, or cancel it.")
    record_event(
        actor, "connection.synced", target=str(connection), target_id=connection.id,
        detail={"kind": kind},
    )  # fmt: skip
    return run


def require_active(connection: Connection) -> None:
    """Raise `ConflictError` saying why a connection takes nothing in."""
    if connection.status != Connection.Status.ACTIVE:
        raise ConflictError(
            f"The connection is {connection.get_status_display().lower()}. "
            f"{connection.status_reason or 'Resume it first.'}"
        )


def start_unattended(
    tenant_id: UUID, connection_id: UUID, *, kind: SyncRun.Kind, trigger: str
) -> SyncRun | None:
    """Queue a run for a schedule. What stands in the way is recorded as a skipped run. None when there is no
    such connection."""
    with tenant_scope(tenant_id):
        connection = Connection.objects.filter(id=connection_id).first()
        if connection is None:
            return None
        if connection.status == Connection.Status.ACTIVE:
            run = queue_run(connection, kind, trigger=trigger)
            reason = "The run before has not ended."
        else:
            run, reason = None, f"The connection is {connection.get_status_display().lower()}."
        return run or _skipped(connection, kind, trigger, reason)


def follow_change(tenant_id: UUID, connection_id: UUID) -> SyncRun | None:
    """Queue a run for a source that tells of a change. One that has not begun yet will see the change; one
    that is going on may be past it, and is followed by another one. Not to be called in a transaction."""
    with tenant_scope(tenant_id):
        connections = Connection.objects.filter(id=connection_id, status=Connection.Status.ACTIVE)
        connection = connections.first()
        if connection is None:
            return None
        run = queue_run(connection, Kind.INCREMENTAL, trigger=WEBHOOK)
        waiting = Q(status=Status.QUEUED, started_at=None, kind__in=[Kind.INCREMENTAL, Kind.FULL])
        if run is not None or connection.runs.filter(waiting).exists():
            return run
    with tenant_scope(tenant_id):
        connections.update(change_noticed=True)
    # The run may have ended between the two: whoever ends one now sees the mark, else it is ours to see.
    with tenant_scope(tenant_id):
        connection = connections.first()
        return None if connection is None else queue_noticed_change(connection)


def cancel_run(*, actor: Actor, run: SyncRun) -> SyncRun:
    """Ask a run to end; it does within seconds. What it has committed stays."""
    actor.require(Action.WRITE)
    run = SyncRun.objects.select_for_update().get(id=run.id)
    if not run.is_unfinished:
        raise ConflictError(f"The run has ended already ({run.get_status_display()}).")
    if run.status == Status.QUEUED:
        end_run(run, Status.CANCELLED)
    else:
        run.cancel_requested = True
        run.save(update_fields=["cancel_requested"])
    record_event(actor, "sync_run.cancelled", target=str(run.connection_id), target_id=run.id)
    return run


def retry_item(*, actor: Actor, item: SyncItem) -> SyncRun:
    """Queue a run over the failed items, this one included."""
    actor.require(Action.WRITE)
    if item.status == SyncItem.Status.STORED and has_index_error(item):
        raise ConflictError(
            "The source was read; it is the document that could not be indexed. Process it again."
        )
    if item.status != SyncItem.Status.FAILED:
        raise ConflictError("Only failed items are tried again.")
    return start_run(actor=actor, connection=item.connection, kind=Kind.RETRY)


def abandoned_runs() -> list[tuple[UUID, UUID]]:
    """Tenant and id of runs that wait for a worker although they are due, or whose worker is silent."""
    now = timezone.now()
    silent = Q(status=Status.RUNNING, heartbeat_at__lt=now - STALE_AFTER)
    due = Q(status=Status.QUEUED, created_at__lt=now - _UNCLAIMED_AFTER) & (
        Q(not_before=None) | Q(not_before__lt=now - _UNCLAIMED_AFTER)
    )
    runs = SyncRun.unscoped.filter(silent | due).order_by("id")
    return list(runs.values_list("tenant_id", "id"))


def unfinished_runs() -> list[tuple[UUID, UUID]]:
    """The same of all unfinished runs: for a start after which no older worker is alive."""
    runs = SyncRun.unscoped.filter(status__in=SyncRun.UNFINISHED).order_by("id")
    return list(runs.values_list("tenant_id", "id"))


def release_run(tenant_id: UUID, run_id: UUID) -> None:
    """Let a run whose worker is surely gone be claimed at once."""
    with tenant_scope(tenant_id):
        SyncRun.objects.filter(id=run_id, status=Status.RUNNING).update(
            status=Status.QUEUED, lease=None, not_before=None
        )


def fail_run(tenant_id: UUID, run_id: UUID, error: AppError) -> None:
    """End a run in which something unforeseen happened."""
    with tenant_scope(tenant_id):
        run = SyncRun.objects.select_for_update().filter(id=run_id).first()
        if run is not None and run.is_unfinished:
            end_run(run, Status.FAILED, error)


def _skipped(connection: Connection, kind: SyncRun.Kind, trigger: str, reason: str) -> SyncRun:
    run = SyncRun(
        connection=connection,
        kind=kind,
        trigger=trigger[:300],
        status=Status.SKIPPED,
        error=reason,
        finished_at=timezone.now(),
    )
    run.save(force_insert=True)
    return run
