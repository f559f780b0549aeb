"""Dates as files state them → ISO 8601, or nothing when they cannot be told for sure."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime


def iso_date(text: str) -> str:
    """The ISO 8601 form of an ISO or mail-header date; empty when it is neither."""
    text = text.strip()
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
