"""What is asked of an MCP server: only what reads."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import BlobResourceContents, CallToolResult, Resource, TextResourceContents, Tool

from config.errors import RejectedError
from connectors.base import Event, Failure, File, LiveHit, Node, Notice, Record, Text
from connectors.native.custom_mcp.connector import CustomMcpConfig, Operation
from connectors.native.custom_mcp.content import hits_of, text_of
from connectors.native.custom_mcp.servers import HttpServer, LocalServer
from connectors.native.custom_mcp.session import all_resources, all_tools, converse

Tools = Mapping[str, Tool]


@dataclass(frozen=True, slots=True)
class Reader:
    """One connection's server. It is connected to anew for each piece of work."""

    config: CustomMcpConfig
    server: HttpServer | LocalServer
    max_bytes: int

    def check(self) -> str:
        """The server's name and how many of its tools may be called."""

        async def look(client: Client) -> str:
            info, tools = client.server_info, await all_tools(client)
            allowed = sum(self._may_call(tool) for tool in tools)
            name = info.name if info else "MCP server"
            return f"{name}: {allowed} of {len(tools)} tools may be called"

        return converse(self.server, look)

    def tools(self) -> list[Node]:
        """Its tools; those that may be called can be chosen."""
        return [
            Node(tool.name, tool.title or tool.name, selectable=self._may_call(tool))
            for tool in converse(self.server, all_tools)
        ]

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """What the search tool finds."""
        config = self.config
        arguments: dict[str, Any] = {config.search_argument: query}
        if config.search_limit_argument:
            arguments[config.search_limit_argument] = limit

        async def ask(client: Client) -> CallToolResult:
            tools = {tool.name: tool for tool in await all_tools(client)}
            return await self._call(client, tools, config.search_tool, arguments)

        return list(hits_of(converse(self.server, ask)))

    def read(self) -> list[Event]:
        """A record or a failure for each operation and resource; a notice when it cannot be known which there
        are."""
        return converse(self.server, self._read)

    async def _read(self, client: Client) -> list[Event]:
        operations = self.config.read_only_operations
        calls = [one for one in operations if one.type == "tool"]
        tools = {tool.name: tool for tool in await all_tools(client)} if calls else {}
        events: list[Event] = [await self._read_tool(client, tools, one) for one in calls]
        wanted = {one.name: one.title for one in operations if one.type == "resource"}
        listed: dict[str, Resource] = {}
        if self.config.all_resources:
            try:
                listed = {str(one.uri): one for one in await all_resources(client)}
            except MCPError as error:
                events.append(Notice(f"Resources could not be listed: {error.message[:500]}"))
        for uri in dict.fromkeys((*wanted, *listed)):
            title = wanted.get(uri) or _name_of(listed.get(uri)) or uri
            events += await self._read_resource(client, uri, title)
        return events

    async def _read_tool(self, client: Client, tools: Tools, operation: Operation) -> Event:
        external_id = _id_of(operation)
        try:
            result = await self._call(client, tools, operation.name, operation.args)
        except (MCPError, RejectedError) as error:
            return Failure(external_id, f"{operation.name}: {error.message[:500]}")
        text = text_of(result)
        if len(text) > self.max_bytes:
            return Failure(
                external_id, f"{operation.name} gave more than {self.max_bytes} characters."
            )
        return Record(
            external_id=external_id,
            title=operation.title or tools[operation.name].title or operation.name,
            body=Text(text),
            metadata={"tool": operation.name, "arguments": sorted(operation.args)},
        )

    async def _read_resource(self, client: Client, uri: str, title: str) -> list[Event]:
        try:
            found = (await client.read_resource(uri)).contents
        except MCPError as error:
            return [Failure(f"resource:{uri}", f"{uri}: {error.message[:500]}")]
        return [
            Record(
                external_id=f"resource:{uri}#{number}" if number else f"resource:{uri}",
                title=title,
                body=_body(content, title),
                url=uri if uri.startswith("https://") else "",
                metadata={"resource": uri},
            )
            for number, content in enumerate(found)
        ]

    async def _call(
        self, client: Client, tools: Tools, name: str, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        if name not in tools:
            raise RejectedError(f"The server has no tool {name}.")
        if not self._may_call(tools[name]):
            raise RejectedError(
                f"{name} does not say that it only reads. If it does, add it to the allowed tools."
            )
        result = await client.call_tool(name, dict(arguments))
        if result.is_error:
            raise RejectedError(text_of(result)[:500] or "The tool failed.")
        return result

    def _may_call(self, tool: Tool) -> bool:
        hints = tool.annotations
        says_so = hints is not None and hints.read_only_hint is True
        return tool.name in self.config.allowed_tools or (self.config.trust_hints and says_so)


def _id_of(operation: Operation) -> str:
    arguments = json.dumps(operation.args, sort_keys=True, ensure_ascii=False)
    return f"tool:{operation.name}:{hashlib.sha256(arguments.encode()).hexdigest()[:16]}"


def _name_of(resource: Resource | None) -> str:
    return (resource.title or resource.name) if resource else ""


def _body(content: TextResourceContents | BlobResourceContents, name: str) -> Text | File:
    kind = content.mime_type or ""
    if isinstance(content, TextResourceContents):
        return Text(content.text, kind or "text/markdown")
    data = base64.b64decode(content.blob)
    return File(lambda: closing(io.BytesIO(data)), name, kind, len(data))
