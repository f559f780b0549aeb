"""Putting runs into the queue, one at a time for each connection."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from connectors.models import Connection, SyncRun

WEBHOOK = "webhook"

Kind = SyncRun.Kind


def queue_run(connection: Connection, kind: SyncRun.Kind, *, trigger: str) -> SyncRun | None:
    """Queue a run in the present transaction. None while another one is unfinished."""
    from connectors.tasks import sync_task  # noqa: PLC0415 - tasks call services

    cursor = connection.cursor if kind == Kind.INCREMENTAL else {}
    run = SyncRun(
        connection=connection,
        kind=kind,
        trigger=trigger[:300],
        cursor=cursor,
        from_start=not cursor and kind in {Kind.INCREMENTAL, Kind.FULL},
    )
    if not insert_run(run):
        return None
    if kind in {Kind.INCREMENTAL, Kind.FULL}:  # it will see what has changed
        Connection.objects.filter(id=connection.id, change_noticed=True).update(
            change_noticed=False
        )
    ids = (str(connection.tenant_id), str(run.id))
    transaction.on_commit(lambda: sync_task.delay(*ids))
    return run


def insert_run(run: SyncRun) -> bool:
    """Write an unfinished run; False while another one of its connection is unfinished. Waits for the
    end of a transaction in which another one ends."""
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def queue_noticed_change(connection: Connection) -> SyncRun | None:
    """Queue a run for a change that the source has told of while another run was unfinished, if it has."""
    if not connection.change_noticed or connection.status != Connection.Status.ACTIVE:
        return None
    return queue_run(connection, Kind.INCREMENTAL, trigger=WEBHOOK)
