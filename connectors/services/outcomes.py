"""How runs end, and what that means for their connection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.models import WebhookEvent
from accounts.services.audit import record_event
from accounts.services.webhooks import emit_event
from accounts.tenancy import tenant_scope
from config.errors import AppError, CredentialsError
from connectors.actors import sync_actor
from connectors.models import Connection, SyncRun
from connectors.services.lease import Lease, LeaseLostError
from connectors.services.queueing import queue_noticed_change

_MOST_WARNINGS = 100
_CREDENTIAL_FAILURES = 3  # in a row, then the connection waits for a person
_KEPT_RUNS = 200

Status, Kind = SyncRun.Status, SyncRun.Kind
_TOLD = {
    Status.SUCCEEDED: WebhookEvent.SYNC_SUCCEEDED,
    Status.PARTIAL: WebhookEvent.SYNC_PARTIAL,
    Status.FAILED: WebhookEvent.SYNC_FAILED,
}
_COUNTS = ("inserted", "updated", "kept", "deleted", "failed", "held_deletions")


def finish_run(lease: Lease, status: SyncRun.Status, error: AppError | None = None) -> None:
    """End a run. One that succeeded with failed items, warnings or held deletions did so partly."""
    try:
        with tenant_scope(lease.tenant_id):
            run = lease.hold()
            if status == Status.SUCCEEDED and (run.failed or run.warnings or run.held_deletions):
                status = Status.PARTIAL
            end_run(run, status, error)
    except LeaseLostError:
        return


def end_run(run: SyncRun, status: SyncRun.Status, error: AppError | None = None) -> None:
    """The same in a scope and under a lock that the caller holds."""
    run.status, run.finished_at, run.lease = status, timezone.now(), None
    if error is not None:
        run.error, run.error_code = error.message, error.code
    run.save()
    connection = Connection.objects.select_for_update().get(id=run.connection_id)
    if status in {Status.SUCCEEDED, Status.PARTIAL}:
        _reward(connection, run)
        queue_noticed_change(connection)
    elif isinstance(error, CredentialsError):
        _count_credential_failure(connection, error)
    _forget_old_runs(connection)
    if status in _TOLD:
        emit_event(run.tenant_id, _TOLD[status], _summary(run, connection))


def _summary(run: SyncRun, connection: Connection) -> dict[str, Any]:
    return {
        "run_id": str(run.id),
        "connection_id": str(connection.id),
        "connection": connection.name,
        "connector": connection.connector,
        "knowledge_base_id": str(connection.knowledge_base_id),
        "kind": run.kind,
        "trigger": run.trigger,
        "error": run.error,
        "error_code": run.error_code,
        **{name: getattr(run, name) for name in _COUNTS},
    }


def postpone_run(lease: Lease, until: datetime, error: AppError) -> None:
    """Put a run back into the queue. It goes on at its last checkpoint."""
    try:
        with tenant_scope(lease.tenant_id):
            run = lease.hold()
            run.status, run.lease, run.not_before = Status.QUEUED, None, until
            run.error, run.error_code = f"Waiting: {error.message}", error.code
            run.save()
    except LeaseLostError:
        return


def note_warning(lease: Lease, message: str) -> None:
    """Add a warning to a run; the last one says how many more there were."""
    with tenant_scope(lease.tenant_id):
        run = lease.hold()
        if len(run.warnings) < _MOST_WARNINGS and message not in run.warnings:
            run.warnings.append(message[:1000].replace("\x00", ""))
            run.save(update_fields=["warnings"])


def _reward(connection: Connection, run: SyncRun) -> None:
    run.error = run.error_code = ""
    run.save(update_fields=["error", "error_code"])
    connection.credential_failures = 0
    connection.last_synced_at = run.finished_at
    if run.kind in {Kind.INCREMENTAL, Kind.FULL}:
        connection.cursor = run.cursor
    connection.save(update_fields=["credential_failures", "last_synced_at", "cursor"])


def _count_credential_failure(connection: Connection, error: CredentialsError) -> None:
    connection.credential_failures += 1
    if connection.credential_failures >= _CREDENTIAL_FAILURES:
        connection.status = Connection.Status.NEEDS_AUTHORISATION
        connection.status_reason = f"{error.message} Enter the credentials again."
        record_event(
            sync_actor(connection), "connection.needs_authorisation",
            target=str(connection), target_id=connection.id,
        )  # fmt: skip
    connection.save(update_fields=["credential_failures", "status", "status_reason"])


def _forget_old_runs(connection: Connection) -> None:
    old = SyncRun.objects.filter(connection=connection).order_by("-created_at", "-id")
    ids = list(old.values_list("id", flat=True)[_KEPT_RUNS:])
    if ids:
        SyncRun.objects.filter(id__in=ids).exclude(status__in=SyncRun.UNFINISHED).delete()
