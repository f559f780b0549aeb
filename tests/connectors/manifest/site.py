"""A source on loopback, and manifests that read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from connectors.base import Event, Record
from connectors.manifest.connector import ManifestConnector, connector_from
from connectors.manifest.loading import parse_manifest, read_manifest
from connectors.registry import CATALOG
from tests.connectors.vendor import HOST, make_connector
from tests.loopback import listening

EventT = TypeVar("EventT")


@dataclass(frozen=True, slots=True)
class Call:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer other than 200 with JSON."""

    data: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Site:
    """Answers by path; `calls` holds what was asked."""

    url: str = ""
    routes: dict[str, Callable[[Call], Any] | Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def asked(self, path: str) -> list[dict[str, str]]:
        """The queries for a path."""
        return [call.query for call in self.calls if call.path == path]

    def __call__(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        reply = self._reply(_call(environ))
        data = reply.data
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        headers = {"Content-Type": "application/json", **reply.headers}
        start(f"{reply.status} x", [*headers.items(), ("Content-Length", str(len(body)))])
        return [body]

    def _reply(self, call: Call) -> Reply:
        self.calls.append(call)
        route = self.routes.get(call.path, Reply({}, 404))
        answer = route(call) if callable(route) else route
        return answer if isinstance(answer, Reply) else Reply(answer)


def _call(environ: dict[str, Any]) -> Call:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    headers = {
        key[5:].replace("_", "-").lower(): value
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    path = environ["RAW_URI"].split("?")[0]
    return Call(environ["REQUEST_METHOD"], path, query, json.loads(body or "null"), headers)


class _Handler(WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        return {**super().get_environ(), "RAW_URI": self.path}

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def served(app: Callable[[dict[str, Any], Any], list[bytes]]) -> Iterator[str]:
    """The address of a WSGI application on a free port."""
    server = WSGIServer((HOST, 0), _Handler)
    server.set_app(app)
    with listening(server):
        yield f"http://{HOST}:{server.server_port}"


def stream(name: str = "issue", **more: Any) -> dict[str, Any]:
    """A stream that lists `/<name>s` whole."""
    mapping = {"title": "title", "body": "body", **more.pop("mapping", {})}
    return {"name": name, "path": f"/{name}s", "mapping": mapping, **more}


def manifest(*streams: dict[str, Any], url: str = "https://api.example", **more: Any) -> Any:
    """The data of a manifest."""
    return {
        "kind": "any",
        "name": "Any",
        "description": "Anything.",
        "category": "Your own",
        "documentation_url": "https://api.example/docs",
        "base_url": url,
        "auth": [{"type": "token"}],
        "check": {"path": "/me", "message": "{{ answer.name }}"},
        "streams": list(streams) or [stream()],
        **more,
    }


def opened(
    data: Any, config: Mapping[str, Any] | None = None, *, method: str = "token", **secrets: str
) -> ManifestConnector:
    """The connector of a manifest."""
    found = connector_from(parse_manifest(data, "any.yml"))
    known = {"token": {"token": "s3cret"}, "api_key": {"api_key": "s3cret"}}
    return make_connector(found, config, secrets or known.get(method, {}), method=method)


def from_catalog(
    kind: str,
    url: str,
    config: Mapping[str, Any],
    secrets: Mapping[str, str],
    method: str = "token",
) -> ManifestConnector:
    """A connector of the catalog that asks another address than its own."""
    known = read_manifest(CATALOG / f"{kind}.yml")
    found = connector_from(known.model_copy(update={"base_url": url}))
    return make_connector(found, config, secrets, method=method)


def pulled(connector: ManifestConnector, cursor: Mapping[str, Any] | None = None) -> list[Event]:
    """All events of a pull."""
    return list(connector.pull(cursor or {}))


def ids(events: list[Event]) -> list[str]:
    """The external ids of the records among events."""
    return [event.external_id for event in events if isinstance(event, Record)]


def only(events: list[Event], kind: type[EventT]) -> list[EventT]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]
