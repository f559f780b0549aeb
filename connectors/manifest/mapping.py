"""From what a source lists to records and hits."""

from __future__ import annotations

from collections.abc import Mapping as Map
from functools import partial
from typing import Any

from config.errors import RejectedError
from connectors.base import File, LiveHit, Record, Text
from connectors.manifest.schema import FileContent, Mapping, SearchMapping, Stream
from connectors.manifest.source import Source
from connectors.manifest.templates import Scope, as_text, evaluate
from connectors.manifest.times import moment


def external_id(mapping: Mapping | SearchMapping, stream: str, scope: Scope) -> str:
    """The stream's prefix and the source's own id. Raises `RejectedError` when a record has none."""
    found = as_text(evaluate(mapping.external_id, scope)).strip()
    if not found:
        raise RejectedError(f"A record of {stream} has no id ({mapping.external_id}).")
    return f"{mapping.prefix or stream}:{found}"


def record_of(stream: Stream, mapping: Mapping, scope: Scope, source: Source) -> Record:
    """The document a record becomes. Raises `RejectedError` when the mapping does not suit it."""
    updated = _raw(mapping.updated_at, scope)
    return Record(
        external_id=external_id(mapping, stream.name, scope),
        title=_line(mapping.title, scope) or "Untitled",
        body=_content(mapping, scope, source),
        version=_line(mapping.version, scope) or as_text(updated),
        scope=stream.name,
        url=_line(mapping.url, scope),
        author=_line(mapping.author, scope),
        breadcrumbs=tuple(filter(None, (_line(one, scope) for one in mapping.breadcrumbs))),
        created_at=moment(_raw(mapping.created_at, scope)),
        updated_at=moment(updated),
        metadata=_facts(mapping.metadata, scope),
        principals=_principals(mapping, scope),
    )


def hit_of(mapping: SearchMapping, scope: Scope) -> LiveHit:
    """The hit a result becomes."""
    return LiveHit(
        external_id=external_id(mapping, mapping.prefix, scope),
        title=_line(mapping.title, scope) or "Untitled",
        text=as_text(evaluate(mapping.text, scope)),
        url=_line(mapping.url, scope),
        author=_line(mapping.author, scope),
        created_at=moment(_raw(mapping.created_at, scope)),
        updated_at=moment(_raw(mapping.updated_at, scope)),
        metadata=_facts(mapping.metadata, scope),
    )


def _content(mapping: Mapping, scope: Scope, source: Source) -> Text | File:
    if mapping.file is not None:
        return _file(mapping.file, scope, source)
    return Text(as_text(_raw(mapping.body, scope)), mapping.content_type)


def _file(file: FileContent, scope: Scope, source: Source) -> File:
    url = _line(file.url, scope)
    if not url:
        raise RejectedError(f"There is no address to download from ({file.url}).")
    size = as_text(_raw(file.size, scope))
    return File(
        partial(source.download, url),
        _line(file.filename, scope) or "file",
        _line(file.content_type, scope),
        int(size) if size.isdecimal() else None,
    )


def _principals(mapping: Mapping, scope: Scope) -> frozenset[str] | None:
    if mapping.principals is None:
        return None
    found: set[str] = set()
    for value in mapping.principals:
        one = evaluate(value, scope)
        found |= {as_text(part) for part in one} if isinstance(one, list) else {as_text(one)}
    return frozenset(found - {""})


def _facts(values: Map[str, str], scope: Scope) -> dict[str, Any]:
    found = {name: evaluate(value, scope) for name, value in values.items()}
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def _raw(value: str | None, scope: Scope) -> Any:
    return None if value is None else evaluate(value, scope)


def _line(value: str | None, scope: Scope) -> str:
    return " ".join(as_text(_raw(value, scope)).split())
