"""Any MCP server as a source: chosen tools and resources are read in each sync, a tool may search live.

Only what reads is called: a tool must be listed by the server, and either be allowed by name or say of itself that
it is read-only (`readOnlyHint`). That hint is the server's own claim; an administrator who does not trust it takes
names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from pydantic import Field, SecretStr
from requests.auth import AuthBase

from config.errors import InvalidInputError
from config.http import HeaderAuth
from connectors.base import (
    NO_AUTH,
    AuthMethod,
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    LiveHit,
    LiveSearch,
    Node,
    Notice,
    Settings,
    token_auth,
)
from connectors.native.custom_mcp.servers import HttpServer, LocalServer

if TYPE_CHECKING:
    from connectors.native.custom_mcp.reading import Reader

# Names of secrets; never of what changes which program runs (PATH, LD_PRELOAD, NODE_OPTIONS, PIP_INDEX_URL …).
_VARIABLE = re.compile(r"^[A-Z][A-Z0-9_]*_(?:TOKEN|KEY|SECRET|PASSWORD|ID|USER|EMAIL)$")


class Operation(Settings):
    """Something to read in each sync."""

    type: Literal["tool", "resource"] = Field(default="tool", title="Kind")
    name: str = Field(min_length=1, title="Name", description="A tool's name, or a resource's URI.")
    args: dict[str, Any] = Field(default={}, title="Arguments", description="Of the tool, as JSON.")
    title: str = Field(default="", title="Title of the document")


class CustomMcpConfig(Settings):
    """Which server, and what of it."""

    transport: Literal["http", "stdio"] = Field(default="http", title="Transport")
    url: str = Field(
        default="", title="Address", description="Of a server over HTTP, such as https://host/mcp."
    )
    command: str = Field(
        default="",
        title="Command",
        description="Of a server on this machine: one of those in GROUNDWORK_MCP_COMMANDS, as it stands there.",
    )
    read_only_operations: list[Operation] = Field(
        default=[], title="Read in each sync", description="Calls of tools, and resources."
    )
    all_resources: bool = Field(
        default=False, title="All resources", description="Every resource that the server lists."
    )
    allowed_tools: list[str] = Field(
        default=[],
        title="Allowed tools",
        description="Tools that only read although they do not say so.",
    )
    trust_hints: bool = Field(
        default=True,
        title="Trust the server's own word",
        description="Tools that call themselves read-only may be called without being listed above.",
    )
    search_tool: str = Field(default="", title="Tool for live search")
    search_argument: str = Field(default="query", title="Its argument for the query")
    search_limit_argument: str = Field(
        default="",
        title="Its argument for the number of results",
        description="Empty: it has none.",
    )


class HeaderCredentials(Settings):
    """A secret in a header of the server's choice."""

    header: str = Field(default="X-API-Key", pattern=r"^[A-Za-z0-9-]+$", title="Header")
    value: SecretStr = Field(title="Value")


class VariableCredentials(Settings):
    """Secrets that a command takes from its environment."""

    variables: SecretStr = Field(
        title="Variables",
        description="A NAME=value on each line; names end in _TOKEN, _KEY, _SECRET, _PASSWORD, _ID, _USER or _EMAIL.",
    )


def _header_auth(credentials: HeaderCredentials) -> AuthBase:
    return HeaderAuth(credentials.header, credentials.value.get_secret_value())


class CustomMcpConnector(Connector[CustomMcpConfig], Browsable, LiveSearch):
    """Connects for each piece of work, and asks for the list of tools each time: it may have changed."""

    places_field = "allowed_tools"
    spec = ConnectorSpec(
        kind="custom-mcp",
        name="MCP server",
        description="Tools and resources of any server of the Model Context Protocol, read-only.",
        category=Category.CUSTOM,
        config=CustomMcpConfig,
        auth=(
            NO_AUTH,
            token_auth(),
            AuthMethod("header", "Secret in a header", HeaderCredentials, auth=_header_auth),
            AuthMethod("environment", "Variables of the command", VariableCredentials),
        ),
        capabilities=frozenset({Capability.DELETIONS, Capability.AGENTIC_DISCOVERY}),
        documentation_url="https://modelcontextprotocol.io",
        sync_every_minutes=6 * 60,
    )

    def check(self) -> str:
        """The server, and how many of its tools may be called."""
        return self._reader.check()

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every operation and resource anew. One that fails is kept as it was."""
        events = self._reader.read()
        yield from events
        yield Checkpoint({})
        if not any(isinstance(event, Notice) for event in events):
            yield Complete()

    def browse(self, parent: str) -> list[Node]:
        """The tools; those that may not be called cannot be chosen."""
        return [] if parent else self._reader.tools()

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """What the chosen tool finds."""
        if not self.config.search_tool:
            raise InvalidInputError("No tool for live search is chosen.")
        return self._reader.search(query, limit)[:limit]

    @property
    def _reader(self) -> Reader:
        # The protocol's client takes long to import: only who connects needs it.
        from connectors.native.custom_mcp.reading import Reader  # noqa: PLC0415

        return Reader(self.config, self._server(), self.context.max_bytes)

    def _server(self) -> HttpServer | LocalServer:
        return self._http_server() if self.config.transport == "http" else self._local_server()

    def _http_server(self) -> HttpServer:
        if not self.config.url.startswith(("https://", "http://")):
            raise InvalidInputError("Enter the server's address.")
        return HttpServer(self.config.url, self.context.client())

    def _local_server(self) -> LocalServer:
        command = self.config.command
        if not command or command not in settings.GROUNDWORK_MCP_COMMANDS:
            raise InvalidInputError(
                f"{command or 'No command'!r} may not be run. The operator names the commands that may be in "
                "GROUNDWORK_MCP_COMMANDS, with their arguments."
            )
        return LocalServer(command, self._variables())

    def _variables(self) -> dict[str, str]:
        if not isinstance(self.credentials, VariableCredentials):
            return {}
        lines = self.credentials.variables.get_secret_value().splitlines()
        pairs = [line.partition("=") for line in lines if line.strip()]
        found = {name.strip(): value.strip() for name, _, value in pairs}
        for name in found:
            if not _VARIABLE.match(name):
                raise InvalidInputError(f"The variable {name[:50]!r} may not be set.")
        return found
