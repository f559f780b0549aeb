"""The connector that a manifest describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model

from config.errors import RejectedError
from connectors.base import (
    Capability,
    Connector,
    ConnectorSpec,
    Context,
    Cursor,
    Event,
    LiveHit,
    LiveSearch,
    Settings,
)
from connectors.manifest.auth import auth_method
from connectors.manifest.connection_schema import ConfigField
from connectors.manifest.mapping import hit_of
from connectors.manifest.rounds import Round
from connectors.manifest.schema import Manifest, Search
from connectors.manifest.source import Source
from connectors.manifest.templates import render, search

_TYPES: dict[str, Any] = {"text": str, "integer": int, "boolean": bool, "list": list[str]}


class ManifestConnector(Connector[Settings]):
    """Runs `manifest`. Made by `connector_from`."""

    manifest: ClassVar[Manifest]

    def __init__(self, config: Settings, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        self.source = Source(self.manifest, config.model_dump(), context)

    def check(self) -> str:
        """Ask what the manifest says, and tell it."""
        check = self.manifest.check
        answer = self.source.ask(check, self.source.scope)
        scope = {**self.source.scope, "answer": answer.data}
        return render(check.message, scope) or f"{self.manifest.name} answers."

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """A round over all streams, or the rest of one."""
        return Round.of(self.source, cursor).events()


class SearchableManifestConnector(ManifestConnector, LiveSearch):
    """The same for a manifest with a search."""

    endpoint: ClassVar[Search]

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """The source's own results."""
        scope = {**self.source.scope, "query": query, "limit": limit}
        answer = self.source.ask(self.endpoint, scope)
        found, mapping = search(self.endpoint.records, answer.data), self.endpoint.mapping
        if not isinstance(found, list):
            raise RejectedError(f"There is no list at {self.endpoint.records!r} in the answer.")
        return [hit_of(mapping, {**scope, "record": record}) for record in found[:limit]]


def connector_from(manifest: Manifest) -> type[ManifestConnector]:
    """The class that the registry gives out for a manifest."""
    name = f"{manifest.kind.title().replace('-', '')}Connector"
    facts: dict[str, Any] = {
        "__doc__": manifest.description,
        "__module__": __name__,
        "manifest": manifest,
        "spec": _spec(manifest),
    }
    if manifest.search is None:
        return type(name, (ManifestConnector,), facts)
    return type(name, (SearchableManifestConnector,), {**facts, "endpoint": manifest.search})


def _spec(manifest: Manifest) -> ConnectorSpec:
    return ConnectorSpec(
        kind=manifest.kind,
        name=manifest.name,
        description=manifest.description,
        category=manifest.category,
        config=_config_model(manifest),
        auth=tuple(auth_method(auth) for auth in manifest.auth),
        capabilities=_capabilities(manifest),
        backend="manifest",
        documentation_url=manifest.documentation_url,
        rate_limit=manifest.rate_limit,
        sync_every_minutes=manifest.sync_every_minutes,
    )


def _config_model(manifest: Manifest) -> type[Settings]:
    fields: dict[str, Any] = {field.name: _field(field) for field in manifest.config}
    name = f"{manifest.kind.title().replace('-', '')}Config"
    return create_model(name, __base__=Settings, __doc__=manifest.description, **fields)


def _field(field: ConfigField) -> Any:
    kind = _TYPES[field.type]
    if field.choices:
        choice: Any = Literal[tuple(field.choices)]
        kind = list[choice] if field.type == "list" else choice
    facts: dict[str, Any] = {"title": field.title, "description": field.description or None}
    if field.pattern:
        facts["pattern"] = field.pattern
    if field.required:
        return Annotated[kind, Field(min_length=1, **facts)] if kind is str else (
            kind, Field(**facts)
        )  # fmt: skip
    default = field.default
    if default is None:
        default = {"text": "", "integer": None, "boolean": False, "list": []}[field.type]
    return (kind | None if default is None else kind, Field(default=default, **facts))


def _capabilities(manifest: Manifest) -> frozenset[Capability]:
    mappings = [stream.mapping for stream in manifest.streams if stream.mapping]
    shown = {
        Capability.INCREMENTAL: any(stream.incremental for stream in manifest.streams),
        Capability.DELETIONS: any(
            stream.complete or stream.gone_when for stream in manifest.streams
        ),
        Capability.FILES: any(mapping.file for mapping in mappings),
        Capability.ACCESS_CONTROL: any(mapping.principals is not None for mapping in mappings),
    }
    return frozenset(capability for capability, has in shown.items() if has)
