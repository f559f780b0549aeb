"""Taking in records that a program sends. Each push is a run of its own, in one transaction: the ledger, the
counts and the history come as with any other run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from accounts.tenancy import new_id
from config.errors import ConflictError, InvalidInputError
from connectors.base import Record
from connectors.models import Connection, SyncItem, SyncRun
from connectors.native.push import PushConnector
from connectors.registry import connector_class
from connectors.services.batch import Batch
from connectors.services.deletions import delete_items
from connectors.services.lease import Lease
from connectors.services.outcomes import finish_run
from connectors.services.queueing import insert_run
from connectors.services.runs import require_active


class Outcome(StrEnum):
    """What became of a pushed record or deletion."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    DELETED = "deleted"
    ABSENT = "absent"


_OUTCOME_OF_COUNT = {
    "inserted": Outcome.CREATED,
    "updated": Outcome.UPDATED,
    "kept": Outcome.UNCHANGED,
    "failed": Outcome.FAILED,
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of one external id."""

    external_id: str
    outcome: Outcome
    document_id: UUID | None = None
    error: str = ""


def push_records(
    *,
    actor: Actor,
    connection: Connection,
    records: Sequence[Record] = (),
    deletions: Sequence[str] = (),
) -> dict[str, Pushed]:
    """Store the records, then delete what is named; results by external id, the last record of an id counts.
    What is stored already does no work. A bad record leaves the others whole. Raises `ConflictError` while
    a run of the connection is going on, or when it is not active."""
    actor.require(Action.WRITE)
    if not issubclass(connector_class(connection.connector), PushConnector):
        raise InvalidInputError(
            "This connection reads its source itself. Push to one of the connector “push”."
        )
    require_active(connection)
    if not records and not deletions:
        return {}
    lease = _begin(actor, connection)
    results = {**_store(lease, connection, records), **_delete(lease, connection, deletions)}
    _record(actor, connection, results)
    finish_run(lease, SyncRun.Status.SUCCEEDED)
    return results


def _begin(actor: Actor, connection: Connection) -> Lease:
    """A run that nobody else sees before it has ended. Other pushes to the connection wait for its end."""
    now, token = timezone.now(), new_id()
    run = SyncRun(
        connection=connection,
        kind=SyncRun.Kind.PUSH,
        trigger=actor.label[:300],
        status=SyncRun.Status.RUNNING,
        lease=token,
        attempts=1,
        heartbeat_at=now,
        started_at=now,
    )
    if not insert_run(run):
        raise ConflictError("A sync of this connection is going on. Push again when it has ended.")
    return Lease(connection.tenant_id, run.id, token)


def _store(lease: Lease, connection: Connection, records: Sequence[Record]) -> dict[str, Pushed]:
    batch = Batch(
        lease=lease,
        connection=connection,
        base=connection.knowledge_base,
        connector=PushConnector,
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )
    for record in records:
        batch.add(record)
    batch.commit()
    items = SyncItem.objects.filter(connection=connection, external_id__in=batch.outcomes)
    found = {item.external_id: item for item in items}
    return {
        name: Pushed(name, _OUTCOME_OF_COUNT[count], found[name].document_id, found[name].error)
        for name, count in batch.outcomes.items()
    }


def _delete(lease: Lease, connection: Connection, names: Sequence[str]) -> dict[str, Pushed]:
    """Without the guard: who pushes a deletion means it."""
    items = list(SyncItem.objects.filter(connection=connection, external_id__in=names))
    if items:
        run = lease.hold()
        run.deleted += len(items)
        run.save(update_fields=["deleted"])
        delete_items(connection, items)
    gone = {item.external_id for item in items}
    return {
        name: Pushed(name, Outcome.DELETED if name in gone else Outcome.ABSENT) for name in names
    }


def _record(actor: Actor, connection: Connection, results: dict[str, Pushed]) -> None:
    """Write down a push that has changed something."""
    outcomes = [one.outcome.value for one in results.values()]
    counts = {name: outcomes.count(name) for name in sorted(set(outcomes))}
    if counts.keys() & {Outcome.CREATED, Outcome.UPDATED, Outcome.DELETED}:
        record_event(
            actor, "connection.pushed", target=str(connection), target_id=connection.id, detail=counts,
        )  # fmt: skip
