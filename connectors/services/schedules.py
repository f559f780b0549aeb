"""When connections sync: rows of django-celery-beat that follow a connection's own two fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery.schedules import ParseException, crontab
from django.db.models import Manager
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from config.errors import FieldError, InvalidInputError
from connectors.base import ConnectorSpec
from connectors.models import Connection, SyncRun

_TASK = "connectors.scheduled_sync"
_LEAST_MINUTES, _MOST_MINUTES = 1, 60 * 24 * 31
_HINT = 'Write {"every_minutes": 60}, or {"cron": "0 6 * * *", "time_zone": "Europe/Berlin"}, or {} for none.'
_KINDS = {"schedule": SyncRun.Kind.INCREMENTAL, "full_schedule": SyncRun.Kind.FULL}


def default_schedule(spec: ConnectorSpec) -> dict[str, int]:
    """The schedule of a connection that is given none; empty where there is nothing to ask for."""
    return {"every_minutes": spec.sync_every_minutes} if spec.sync_every_minutes else {}


def validate_schedule(field: str, schedule: Any) -> None:
    """Raise `InvalidInputError` naming what is wrong."""
    _timing(field, schedule)


def follow_schedules(connection: Connection) -> None:
    """Make the scheduler do what the connection says, in the present transaction."""
    for field, kind in _KINDS.items():
        timing = _timing(field, getattr(connection, field))
        name = _name(connection, kind)
        if timing is None:
            PeriodicTask.objects.filter(name=name).delete()
            continue
        PeriodicTask.objects.update_or_create(
            name=name,
            defaults={
                "task": _TASK,
                "args": json.dumps([str(connection.tenant_id), str(connection.id), kind]),
                "enabled": connection.status == Connection.Status.ACTIVE,
                "interval": None,
                "crontab": None,
                **timing,
            },
        )


def forget_schedules(connection: Connection) -> None:
    """Stop scheduling a connection."""
    names = [_name(connection, kind) for kind in _KINDS.values()]
    for task in PeriodicTask.objects.filter(name__in=names):
        task.delete()  # one by one, so that the scheduler is told


def next_run_at(connection: Connection, kind: SyncRun.Kind) -> datetime | None:
    """When the scheduler will start a run, as far as it is known."""
    task = PeriodicTask.objects.filter(name=_name(connection, kind), enabled=True).first()
    if task is None:
        return None
    since = task.last_run_at or task.date_changed
    left: timedelta = task.schedule.remaining_estimate(since)
    return timezone.now() + max(left, timedelta(0))


def _name(connection: Connection, kind: str) -> str:
    return f"sync {connection.id} {kind}"


def _timing(field: str, schedule: Any) -> dict[str, Any] | None:
    if not isinstance(schedule, Mapping):
        raise _fault(field, "Must be an object.")
    if not schedule:
        return None
    if set(schedule) == {"every_minutes"}:
        return {"interval": _interval(field, schedule["every_minutes"])}
    if "cron" in schedule and set(schedule) <= {"cron", "time_zone"}:
        return {"crontab": _crontab(field, schedule["cron"], schedule.get("time_zone", "UTC"))}
    raise _fault(field, _HINT)


def _interval(field: str, minutes: Any) -> IntervalSchedule:
    if type(minutes) is not int or not _LEAST_MINUTES <= minutes <= _MOST_MINUTES:
        raise _fault(field, f"every_minutes is a number from {_LEAST_MINUTES} to {_MOST_MINUTES}.")
    found: IntervalSchedule = _shared(
        IntervalSchedule.objects, every=minutes, period=IntervalSchedule.MINUTES
    )
    return found


def _crontab(field: str, text: Any, time_zone: Any) -> CrontabSchedule:
    parts = str(text).split()
    if len(parts) != 5:
        raise _fault(field, "cron has five parts: minute, hour, day of month, month, day of week.")
    try:
        zone = ZoneInfo(str(time_zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _fault(field, f"{time_zone!r} is no time zone.") from error
    try:
        crontab(*(parts[i] for i in (0, 1, 4, 2, 3)))
    except (ParseException, ValueError) as error:
        raise _fault(field, f"{text!r} is no cron expression: {error}.") from error
    found: CrontabSchedule = _shared(
        CrontabSchedule.objects, minute=parts[0], hour=parts[1], day_of_month=parts[2],
        month_of_year=parts[3], day_of_week=parts[4], timezone=zone,
    )  # fmt: skip
    return found


def _shared(rows: Manager[Any], **values: Any) -> Any:
    """A row of the scheduler's, which has no constraint against twins: any of them will do."""
    return rows.filter(**values).order_by("pk").first() or rows.create(**values)


def _fault(field: str, message: str) -> InvalidInputError:
    return InvalidInputError(
        f"The schedule cannot be used. {message}", [FieldError(field, message)]
    )
