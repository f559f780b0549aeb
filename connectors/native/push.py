"""Records that a program sends by itself, over the API."""

from __future__ import annotations

from collections.abc import Iterator

from connectors.base import Capability, Category, Connector, ConnectorSpec, Cursor, Event, Settings


class PushConfig(Settings):
    """Nothing to choose."""


class PushConnector(Connector[PushConfig]):
    """Asks nobody: what it has was sent. Whoever sends it names readers as the tenant knows them."""

    names_are_the_tenants = True
    spec = ConnectorSpec(
        kind="push",
        name="Push",
        description="Records that your own program sends over the API.",
        category=Category.CUSTOM,
        config=PushConfig,
        capabilities=frozenset({Capability.DELETIONS}),
        sync_every_minutes=0,
    )

    def check(self) -> str:
        """There is nothing to reach."""
        return "Ready: it waits for records to be pushed."

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Nothing."""
        del cursor
        return iter(())
