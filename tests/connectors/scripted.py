"""A connector that plays what a test writes down."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar

from connectors.base import (
    NO_AUTH,
    Capability,
    Category,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    File,
    LiveHit,
    LiveSearch,
    Membership,
    Memberships,
    Record,
    Refetch,
    Settings,
    Text,
    token_auth,
)

Script = Callable[["ScriptedConnector", Cursor], Iterator[Event]]


class ScriptedConfig(Settings):
    """Nothing to choose but a word."""

    word: str = ""


class ScriptedConnector(Connector[ScriptedConfig], Memberships):
    """Its events are those of `script`, a function of the cursor."""

    spec = ConnectorSpec(
        kind="scripted",
        name="Scripted",
        description="Plays a script.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
        auth=(NO_AUTH, token_auth()),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS}),
    )
    script: ClassVar[Script]
    groups: ClassVar[list[Membership]] = []
    cursors: ClassVar[list[Cursor]] = []
    fetched: ClassVar[list[str]] = []

    def check(self) -> str:
        return "scripted"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        type(self).cursors.append(cursor)
        return type(self).script(self, cursor)

    def memberships(self) -> Iterator[Membership]:
        return iter(type(self).groups)


class RestrictedConnector(ScriptedConnector):
    """The same with a promise of permissions."""

    spec = ConnectorSpec(
        kind="restricted",
        name="Restricted",
        description="Plays a script.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
        capabilities=frozenset({Capability.ACCESS_CONTROL}),
    )


class RefetchingConnector(ScriptedConnector, Refetch):
    """The same for single things."""

    spec = ConnectorSpec(
        kind="refetching",
        name="Refetching",
        description="Plays a script.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
    )
    again: ClassVar[Callable[[Sequence[str]], Iterator[Event]]]

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        return type(self).again(external_ids)


class SearchableConnector(ScriptedConnector, LiveSearch):
    """The same, searchable at the source."""

    spec = ConnectorSpec(
        kind="searchable",
        name="Searchable",
        description="Plays a script.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
    )
    answer: ClassVar[Callable[[ScriptedConfig, str], list[LiveHit]]]

    def search(self, query: str, limit: int) -> list[LiveHit]:
        return type(self).answer(self.config, query)


def text(external_id: str, content: str = "", **facts: Any) -> Record:
    """A record whose content is at hand."""
    return Record(
        external_id,
        facts.pop("title", external_id),
        Text(content or f"About {external_id}."),
        **facts,
    )


def file(
    external_id: str, content: bytes | Exception = b"", *, version: str = "1", **facts: Any
) -> Record:
    """A record whose content is fetched; the fetch is written down, or fails."""

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        ScriptedConnector.fetched.append(external_id)
        if isinstance(content, Exception):
            raise content
        yield io.BytesIO(content or f"About {external_id}.".encode())

    name = facts.pop("filename", f"{external_id}.txt")
    return Record(external_id, external_id, File(opened, name), version=version, **facts)
