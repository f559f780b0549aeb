"""What a source sent, kept so that it can be indexed again without asking the source.

One file of facts and one of content for each external id, the newest state of both, in the store of
originals. It is written beside the database, not in its transaction: after a crash a replay may know a
record a little newer than the ledger does, which does no harm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import datetime
from typing import BinaryIO, cast

from django.core.files import File as DjangoFile
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils.dateparse import parse_datetime

from connectors.base import Complete, Event, Failure, File, Record, Text
from connectors.models import Connection

_FACTS, _BODY = ".json", ".body"


def keep(connection: Connection, record: Record, content: BinaryIO | None) -> None:
    """Write a record's facts, and its content where it is new."""
    name = _name(connection, record.external_id)
    body = record.body
    facts = {
        **asdict(replace(record, body=Text(""))),
        "body": {
            "filename": body.filename if isinstance(body, File) else "",
            "content_type": body.content_type,
        },
        "principals": None if record.principals is None else sorted(record.principals),
    }
    if content is not None:
        content.seek(0)
        _write(name + _BODY, DjangoFile(content))
    _write(name + _FACTS, ContentFile(json.dumps(facts, default=_as_text).encode()))


def forget(connection: Connection, external_ids: Sequence[str]) -> None:
    """Remove what was kept of some records."""
    for external_id in external_ids:
        name = _name(connection, external_id)
        default_storage.delete(name + _FACTS)
        default_storage.delete(name + _BODY)


def forget_all(connection: Connection) -> None:
    """Remove everything that was kept of a connection."""
    for name in _files(connection):
        default_storage.delete(f"{_folder(connection)}/{name}")


def replay(connection: Connection) -> Iterator[Event]:
    """Everything kept, as the source would give it. Ends with `Complete` for each scope."""
    scopes = set()
    for name in _files(connection):
        if not name.endswith(_FACTS):
            continue
        path = f"{_folder(connection)}/{name.removesuffix(_FACTS)}"
        with default_storage.open(path + _FACTS, "rb") as file:
            facts = json.loads(file.read())
        scopes.add(facts["scope"])
        if default_storage.exists(path + _BODY):
            yield _record(facts, path + _BODY)
        else:
            yield Failure(facts["external_id"], "Its content was not captured.", facts["scope"])
    for scope in sorted(scopes):
        yield Complete(scope)


def _record(facts: dict[str, object], path: str) -> Record:
    body = cast(dict[str, str], facts.pop("body"))
    for name in ("created_at", "updated_at"):
        facts[name] = parse_datetime(str(facts[name])) if facts[name] else None
    if facts["principals"] is not None:
        facts["principals"] = frozenset(cast(list[str], facts["principals"]))

    def opened() -> AbstractContextManager[BinaryIO]:
        return cast(AbstractContextManager[BinaryIO], default_storage.open(path, "rb"))

    if body["filename"]:
        content: Text | File = File(opened, body["filename"], body["content_type"])
    else:
        with opened() as file:
            content = Text(file.read().decode("utf-8", "replace"), body["content_type"])
    return Record(**{**facts, "body": content, "version": ""})  # type: ignore[arg-type]


def _write(name: str, content: DjangoFile[bytes]) -> None:
    default_storage.delete(name)
    default_storage.save(name, content)


def _files(connection: Connection) -> list[str]:
    try:
        return sorted(default_storage.listdir(_folder(connection))[1])
    except FileNotFoundError:
        return []


def _folder(connection: Connection) -> str:
    return f"captures/{connection.tenant_id}/{connection.id}"


def _name(connection: Connection, external_id: str) -> str:
    return f"{_folder(connection)}/{hashlib.sha256(external_id.encode()).hexdigest()}"


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
