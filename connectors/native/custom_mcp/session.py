"""A conversation with an MCP server, seen from synchronous code.

Over HTTP every request goes out by the connection's own `HttpClient`, so that private addresses, retries, waits and
renewed tokens are treated as everywhere. A local command gets no shell, and of the environment only what is harmless.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    Implementation,
    ListResourcesResult,
    ListToolsResult,
    Resource,
    Tool,
)

from config.errors import RejectedError, RemoteError, TransientError
from config.http import HttpClient
from connectors.native.custom_mcp.servers import HttpServer, LocalServer

_TIMEOUT_S = 60.0
_MOST_PAGES = 100
# Statuses that the protocol gives a meaning; the rest is the HTTP client's to judge.
_EXPECTED = frozenset({400, 404, 405, 406, 415, 422})
_OURS = frozenset({"host", "content-length", "connection", "accept-encoding", "user-agent"})
_WIRE = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})
_INFO = Implementation(name="groundwork", version="0.1")

Result = TypeVar("Result")
Page = TypeVar("Page", ListToolsResult, ListResourcesResult)
Work = Callable[[Client], Awaitable[Result]]


class _OwnTransport(httpx2.AsyncBaseTransport):
    """Sends by an `HttpClient`. Remembers what went wrong: the protocol's client knows no such errors."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self.error: BaseException | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Called by httpx for each request."""
        if request.method == "GET":  # the server's own stream, which it may refuse as well
            return httpx2.Response(405)
        if self.error is not None:
            return httpx2.Response(500)
        send = anyio.to_thread.run_sync(self._send, request, await request.aread())
        # Whatever ends the work, as a cancelled run does, is kept for whoever waits.
        (answer,) = await asyncio.gather(send, return_exceptions=True)
        if isinstance(answer, BaseException):
            self.error = answer
            return httpx2.Response(500)
        return answer

    def _send(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OURS}
        answer = self._http.request(
            request.method, str(request.url), data=body, headers=headers, expected=_EXPECTED
        )
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _WIRE}
        return httpx2.Response(answer.status_code, headers=kept, content=answer.content)


def converse(server: HttpServer | LocalServer, work: Work[Result]) -> Result:
    """Connect, do the work, disconnect. Raises `RemoteError`."""
    own = _OwnTransport(server.http) if isinstance(server, HttpServer) else None
    try:
        return anyio.run(_converse, server, own, work)
    except (MCPError, OSError, ValueError, ExceptionGroup) as error:
        if own is not None and own.error is not None:
            raise own.error from error
        raise _error_of(error) from error


async def all_tools(client: Client) -> list[Tool]:
    """Every tool of the server, as far as it tells without repeating itself."""
    return [tool async for page in _pages(client.list_tools) for tool in page.tools]


async def all_resources(client: Client) -> list[Resource]:
    """Every resource, likewise."""
    return [one async for page in _pages(client.list_resources) for one in page.resources]


async def _pages(ask: Callable[..., Awaitable[Page]]) -> AsyncIterator[Page]:
    seen: set[str | None] = {None}
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor in seen:
            return
        seen.add(cursor)


async def _converse(
    server: HttpServer | LocalServer, own: _OwnTransport | None, work: Work[Result]
) -> Result:
    async with AsyncExitStack() as stack:
        if isinstance(server, HttpServer):
            http = await stack.enter_async_context(httpx2.AsyncClient(transport=own))
            transport = streamable_http_client(server.url, http_client=http)
        else:
            silence = stack.enter_context(Path(os.devnull).open("w"))  # noqa: SIM115 - closed by `stack`
            command, *arguments = shlex.split(server.command)
            parameters = StdioServerParameters(
                command=command, args=arguments, env=dict(server.variables), cwd="/"
            )
            transport = stdio_client(parameters, errlog=silence)
        client = Client(transport, read_timeout_seconds=_TIMEOUT_S, client_info=_INFO, cache=None)
        return await work(await stack.enter_async_context(client))


def _error_of(error: BaseException) -> RemoteError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, MCPError):
        if error.code in {REQUEST_TIMEOUT, CONNECTION_CLOSED}:
            return TransientError(f"The MCP server does not answer: {error.message[:300]}.")
        return RejectedError(f"The MCP server refuses: {error.message[:300]}")
    if isinstance(error, OSError):
        return RejectedError(f"The command cannot be started: {error.strerror or error}.")
    return RejectedError(f"The MCP server answers what is no MCP ({type(error).__name__}).")
