"""Values of a database as text, as JSON for a cursor, and as what they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

_PLACE = re.compile(r"\{([^{}\n]+)\}")
_NO = frozenset({"", "0", "f", "false", "n", "no", "off"})
_READERS: dict[str, Callable[[str], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": bytes.fromhex,
}


def as_text(value: Any) -> str:
    """As people read it; empty for NULL."""
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, list | tuple | set):
        return ", ".join(as_text(one) for one in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def filled(template: str, row: Mapping[str, Any]) -> str:
    """A template with each `{column}` replaced by its value. Values are data: braces in them mean nothing,
    and what names no column stays."""
    return _PLACE.sub(
        lambda found: as_text(row[found[1]]) if found[1] in row else found[0], template
    )


def columns_in(template: str) -> list[str]:
    """What a template names."""
    return _PLACE.findall(template)


def to_json(value: Any) -> Any:
    """A value that a cursor can hold: as it is, or with its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, datetime | date | time):
        return [type(value).__name__, value.isoformat()]
    return [type(value).__name__, str(value)]


def from_json(value: Any) -> Any:
    """The value again. Types that we do not know are compared as text."""
    if isinstance(value, list):
        kind, content = value
        return _READERS.get(kind, str)(content)
    return value


def as_moment(value: Any) -> datetime | None:
    """A time, if it is one; without a zone it is taken for UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    return (
        datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, date)
        else None
    )


def as_flag(value: Any) -> bool:
    """Whether a flag is set: a truth value, a number, a word, or a time of deletion."""
    if isinstance(value, bool | int | float | Decimal):
        return bool(value)
    if isinstance(value, bytes | bytearray | memoryview):  # a bit, to MySQL
        return bytes(value).strip(b"\0") not in {b"", b"0"}
    text = as_text(value).strip().lower()
    return text not in _NO and not text.startswith("0000-")


def as_names(value: Any) -> frozenset[str]:
    """Names out of an array, a JSON list, or text with commas or blanks between them."""
    if isinstance(value, list | tuple | set):
        return frozenset(as_text(one) for one in value)
    return frozenset(re.split(r"[\s,;\[\]\"]+", as_text(value))) - {""}
