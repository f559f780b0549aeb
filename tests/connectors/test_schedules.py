"""When connections sync."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks

from accounts.access import Actor
from accounts.tenancy import new_id, tenant_scope
from config.errors import InvalidInputError
from connectors import tasks
from connectors.models import Connection, SyncRun
from connectors.services.connections import (
    delete_connection,
    pause_connection,
    resume_connection,
    update_connection,
)
from connectors.services.runs import start_unattended
from connectors.services.schedules import validate_schedule
from tests.connectors.conftest import Syncs

Connect = Callable[..., Connection]
BERLIN = {"cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin"}
INCREMENTAL, FULL = SyncRun.Kind.INCREMENTAL, SyncRun.Kind.FULL


def rows(connection: Connection) -> dict[str, PeriodicTask]:
    """The scheduler's rows of a connection by kind of run."""
    found = PeriodicTask.objects.filter(name__startswith=f"sync {connection.id}")
    return {row.name.rpartition(" ")[2]: row for row in found}


def test_a_connection_is_scheduled_as_its_connector_suggests(
    connect: Connect, keeper: Actor
) -> None:
    connection = connect()
    row = rows(connection)["incremental"]
    assert (row.interval.every, row.interval.period, row.crontab) == (60, "minutes", None)
    assert row.task == "connectors.scheduled_sync"
    assert json.loads(row.args) == [str(keeper.tenant_id), str(connection.id), "incremental"]


def test_an_interval_becomes_a_time_of_day_in_its_zone(connect: Connect, keeper: Actor) -> None:
    connection = connect(schedule={"every_minutes": 5}, full_schedule=BERLIN)
    assert rows(connection)["incremental"].interval.every == 5
    cron = rows(connection)["full"].crontab
    assert (cron.minute, cron.hour, cron.day_of_week, str(cron.timezone)) == (
        "30", "6", "1-5", "Europe/Berlin",
    )  # fmt: skip
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=connection, schedule=BERLIN, full_schedule={})
    assert set(rows(connection)) == {"incremental"}
    row = rows(connection)["incremental"]
    assert (row.interval, row.crontab.hour) == (None, "6")


def test_a_time_of_day_holds_in_summer_and_winter(connect: Connect) -> None:
    schedule = rows(connect(schedule={"cron": "30 6 * * *", "time_zone": "Europe/Berlin"}))[
        "incremental"
    ].crontab.schedule
    for month, hour_utc in ((1, 5), (7, 4)):
        before = datetime(2026, month, 10, hour_utc, 29, tzinfo=UTC)
        wait = schedule.remaining_delta(before, tz=schedule.tz)
        start, delta = wait[0], wait[1]
        due = start + delta
        assert due.astimezone(UTC) == datetime(2026, month, 10, hour_utc, 30, tzinfo=UTC)


def test_a_pause_holds_the_schedule_and_a_deletion_ends_it(connect: Connect, keeper: Actor) -> None:
    connection = connect(full_schedule=BERLIN)
    with tenant_scope(keeper.tenant_id):
        pause_connection(actor=keeper, connection=connection)
    assert {row.enabled for row in rows(connection).values()} == {False}
    with tenant_scope(keeper.tenant_id):
        resume_connection(actor=keeper, connection=connection)
    assert {row.enabled for row in rows(connection).values()} == {True}
    before = PeriodicTasks.last_change()
    with tenant_scope(keeper.tenant_id):
        delete_connection(actor=keeper, connection=connection)
    assert rows(connection) == {}
    assert PeriodicTasks.last_change() > before, "the scheduler is told"


def test_twins_in_the_schedulers_tables_do_no_harm(connect: Connect) -> None:
    connect(schedule=BERLIN)
    twin = CrontabSchedule.objects.get(hour="6")
    twin.pk = None
    twin.save()
    assert rows(connect(name="Another", schedule=BERLIN))["incremental"].crontab.hour == "6"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([], "Must be an object"),
        ("hourly", "Must be an object"),
        ({"every": 5}, "every_minutes"),
        ({"every_minutes": 5, "cron": "0 6 * * *"}, "every_minutes"),
        ({"every_minutes": 0}, "a number from 1"),
        ({"every_minutes": "5"}, "a number from 1"),
        ({"every_minutes": True}, "a number from 1"),
        ({"every_minutes": 10**9}, "a number from 1"),
        ({"cron": "0 6 * *"}, "five parts"),
        ({"cron": "99 6 * * *"}, "no cron expression"),
        ({"cron": "x 6 * * *"}, "no cron expression"),
        ({"cron": "0 0 31 2 *"}, "no cron expression"),
        ({"cron": "0 6 * * *", "time_zone": "Mars/Olympus"}, "no time zone"),
        ({"cron": "0 6 * * *", "time_zone": "../../etc/passwd"}, "no time zone"),
        ({"cron": "0 6 * * *", "time_zone": ""}, "no time zone"),
    ],
)
def test_a_wrong_schedule_is_named(schedule: Any, message: str, db: None) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        validate_schedule("full_schedule", schedule)
    assert caught.value.errors[0].field == "full_schedule"


def test_the_schedule_starts_a_run(connect: Connect, syncs: Syncs, monkeypatch: Any) -> None:
    connection = connect()
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        tasks.start_scheduled_task, "apply_async", lambda ids, **_: started.append(ids)
    )
    tasks.scheduled_sync_task.run(*json.loads(rows(connection)["incremental"].args))
    tasks.start_scheduled_task.run(*started[0])
    with tenant_scope(connection.tenant_id):
        run = SyncRun.objects.get()
    assert (run.kind, run.trigger, run.status) == ("incremental", "schedule", "queued")


def test_what_stands_in_the_way_is_recorded(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    connection = connect()
    first = _unattended(connection, INCREMENTAL)
    second = _unattended(connection, FULL)
    assert first is not None
    assert second is not None
    assert (first.status, second.status) == ("queued", "skipped")
    assert "not ended" in second.error
    assert second.finished_at is not None
    with tenant_scope(keeper.tenant_id):
        first.delete()
        pause_connection(actor=keeper, connection=connection)
    third = _unattended(connection, INCREMENTAL)
    assert third is not None
    assert (third.status, third.error) == ("skipped", "The connection is paused.")


def test_what_is_gone_is_left_alone(connect: Connect, keeper: Actor) -> None:
    assert start_unattended(keeper.tenant_id, new_id(), kind=FULL, trigger="schedule") is None


def _unattended(connection: Connection, kind: SyncRun.Kind) -> SyncRun | None:
    return start_unattended(connection.tenant_id, connection.id, kind=kind, trigger="schedule")
