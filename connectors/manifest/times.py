"""Moments as sources write them."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_MILLISECONDS_FROM = 100_000_000_000  # as seconds, this would be the year 5138


def moment(value: Any) -> datetime | None:
    """An ISO 8601 text, a Unix time in seconds or milliseconds, or a date as mail has it (RFC 5322)."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_unix(float(value))
    text = str(value).strip()
    if text.replace(".", "", 1).isdecimal() and len(text) != 8:  # eight figures: 20250131
        return _of_unix(float(text))
    return _of_text(text)


def written(value: datetime, form: str) -> str | int:
    """A moment as a request states it, rounded down: `iso`, `date`, `unix` or `unix_ms`."""
    value = value.astimezone(UTC)
    if form == "unix":
        return int(value.timestamp())
    if form == "unix_ms":
        return int(value.timestamp()) * 1000
    return value.strftime("%Y-%m-%d" if form == "date" else "%Y-%m-%dT%H:%M:%SZ")


def _of_unix(seconds: float) -> datetime | None:
    if seconds >= _MILLISECONDS_FROM:
        seconds /= 1000
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _of_text(text: str) -> datetime | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = parse(text)
        except (TypeError, ValueError, IndexError):
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
