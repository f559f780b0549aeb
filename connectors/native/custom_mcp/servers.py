"""Where an MCP server is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from config.http import HttpClient


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server behind an address."""

    url: str
    http: HttpClient


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that is a command line of this machine, with variables of its own."""

    command: str
    variables: Mapping[str, str]
