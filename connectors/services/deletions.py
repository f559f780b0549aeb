"""Removing what is gone at the source, unless it is suspiciously much: then a person is asked."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services import capture
from connectors.services.lease import Lease
from knowledge.services.documents import remove_documents

_BATCH = 200
_ALWAYS_ALLOWED = 20  # so few may go from a small base without a question


def sweep(lease: Lease, connection: Connection, scope: str) -> None:
    """Remove what a complete listing of a scope did not meet."""
    while True:
        lease.check()
        with tenant_scope(lease.tenant_id):
            run = lease.hold()
            missing = SyncItem.objects.filter(
                ~Q(seen_run__in=_sightings(run)) | Q(seen_run=None),
                connection=connection,
                scope=scope,
            ).exclude(status=SyncItem.Status.GONE)
            items = list(missing.order_by("id")[:_BATCH])
            if not items:
                promised = SyncItem.objects.filter(connection=connection, scope=scope)
                promised.filter(in_complete_scope=False).update(in_complete_scope=True)
                return
            if not run.held_deletions and not _allows(connection, run, missing.count()):
                run.held_deletions += missing.update(status=SyncItem.Status.GONE)
            else:
                remove_items(connection, run, items)
            run.save(update_fields=["deleted", "held_deletions"])


def sweep_left_scopes(lease: Lease, connection: Connection) -> None:
    """Remove the scopes that a run over everything did not come to, of those that have been complete before:
    places that are no longer chosen, or no longer there. Not after warnings or failures, which may be why."""
    with tenant_scope(lease.tenant_id):
        run = lease.hold()
        if run.failed or run.warnings:
            return
        items = SyncItem.objects.filter(connection=connection)
        promised = items.filter(in_complete_scope=True)
        scopes = set(promised.values_list("scope", flat=True).distinct())
        seen = items.filter(seen_run__in=_sightings(run))
        scopes -= set(seen.values_list("scope", flat=True).distinct())
    for scope in sorted(scopes):
        sweep(lease, connection, scope)


def remove_items(connection: Connection, run: SyncRun, items: Sequence[SyncItem]) -> None:
    """Delete items with their documents, or hold them when the guard says so. Counts on the run, which the
    caller saves."""
    if run.held_deletions or not _allows(connection, run, len(items)):
        ids = [item.id for item in items if item.status != SyncItem.Status.GONE]
        run.held_deletions += SyncItem.objects.filter(id__in=ids).update(
            status=SyncItem.Status.GONE
        )
        return
    run.deleted += len(items)
    delete_items(connection, items)


def approve_deletions(*, actor: Actor, connection: Connection) -> int:
    """Delete what waits for a person's word. Returns how many documents went."""
    actor.require(Action.WRITE)
    waiting = SyncItem.objects.filter(connection=connection, status=SyncItem.Status.GONE)
    items = list(waiting.select_for_update().order_by("id"))  # one may be coming back just now
    for start in range(0, len(items), _BATCH):
        delete_items(connection, items[start : start + _BATCH])
    connection.runs.filter(held_deletions__gt=0).update(held_deletions=0)
    record_event(
        actor, "connection.deletions_approved", target=str(connection), target_id=connection.id,
        detail={"documents": len(items)},
    )  # fmt: skip
    return len(items)


def _sightings(run: SyncRun) -> list[UUID]:
    """The runs whose sightings count: this one, and those that ended early in the listing that it goes on
    with. What they met is not gone for not being met again."""
    if run.kind != SyncRun.Kind.INCREMENTAL:
        return [run.id]
    runs = SyncRun.objects.filter(connection_id=run.connection_id, kind=run.kind)
    ended = SyncRun.objects.filter(
        connection_id=run.connection_id,
        kind__in=[SyncRun.Kind.INCREMENTAL, SyncRun.Kind.FULL],
        status__in=[SyncRun.Status.SUCCEEDED, SyncRun.Status.PARTIAL],
    )
    last = ended.order_by("-created_at").values_list("created_at", flat=True).first()
    if last is not None:
        runs = runs.filter(created_at__gt=last)
    return [run.id, *runs.values_list("id", flat=True)]


def _allows(connection: Connection, run: SyncRun, more: int) -> bool:
    """Whether the guard lets so many more go. The share is of what the connection had when the run began."""
    stored = SyncItem.objects.filter(connection=connection).count() + run.deleted
    most = max(_ALWAYS_ALLOWED, stored * connection.deletion_guard_percent // 100)
    return run.deleted + more <= most


def delete_items(connection: Connection, items: Sequence[SyncItem]) -> None:
    """Delete items with their documents, whatever the guard says."""
    remove_documents([item.document_id for item in items if item.document_id])
    SyncItem.objects.filter(id__in=[item.id for item in items]).delete()
    if connection.keeps_capture:
        capture.forget(connection, [item.external_id for item in items])
