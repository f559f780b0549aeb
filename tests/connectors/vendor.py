"""Vendors' own API descriptions, served on loopback by the validating mock of ../shared/specs.

`vendor("slack")` starts one; `vendor.on("GET /conversations.list", handler)` plays a list with its pages (give
each list operation a handler: the examples' next cursors never end). A handler takes what was asked and the
example answer, and returns an answer that the description allows, or raises `Refusal`. A request or an answer
that does not fit the description fails the test at its end. Modules need
`pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])`.
"""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, TypeVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
from django.utils.dateparse import parse_datetime

from config.http import HttpClient, Pacing
from connectors.base import Connector, Context
from connectors.services.opening import auth_method, parse_config, parse_credentials
from tests.loopback import listening

SPECS = Path(__file__).resolve().parents[3] / "shared" / "specs"
HOST = "127.0.0.1"

StartVendor = Callable[[str], "Vendor"]
ConnectorT = TypeVar("ConnectorT", bound=Connector[Any])


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a handler sees it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


class Refusal(Exception):  # noqa: N818 - no fault of the program
    """Raised by a handler: this status instead of an answer."""

    def __init__(
        self, status: int, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body or {}, dict(headers or {})


Handler = Callable[[Asked, Any], Any]


@dataclass
class Vendor:
    """A running description."""

    app: Any
    url: str = ""  # where its paths begin
    faults: list[Any] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)  # path → content, beside the description
    fetched: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # files: path, headers

    def on(self, operation: str, handler: Handler | Any) -> None:
        """Answer an operation ("GET /users.list") by a function, or always with the same."""
        assert operation in {one["key"] for one in self.app.spec.ops}, f"no operation {operation}"

        def handle(request: dict[str, Any], example: Any) -> Any:
            return handler(_asked(request), example) if callable(handler) else handler

        self.app.handlers[operation] = handle

    def refuse_next(self, status: int, body: Any = None, *, times: int = 1, **headers: str) -> None:
        """Answer the next requests so, whatever they ask; `Retry_After="1"` is a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.app.next += [{"status": status, "body": body or {}, "headers": named}] * times

    def asked(self, operation: str) -> list[dict[str, str]]:
        """The queries of the requests for an operation so far."""
        return [dict(one["query"]) for one in self.app.log if one["operation"] == operation]

    def forget(self) -> None:
        """Begin the log anew."""
        self.app.log.clear()
        self.fetched.clear()


def pages(items: list[Any], cursor: str | None, size: int) -> tuple[list[Any], str]:
    """A page of items by an offset as cursor, and the next cursor, empty at the end."""
    start = int(cursor or 0)
    after = start + size
    return items[start:after], str(after) if after < len(items) else ""


def make_connector(
    found: type[ConnectorT],
    config: Mapping[str, Any] | None = None,
    credentials: Mapping[str, Any] | None = None,
    *,
    method: str = "token",
    pause: Callable[[float], None] = lambda _: None,
) -> ConnectorT:
    """A connector as the engine opens it, without a database."""
    way = auth_method(found.spec, method)
    secrets = parse_credentials(way, credentials or {})
    auth = way.auth(secrets) if way.auth else None

    def client(base_url: str = "", **more: Any) -> HttpClient:
        return HttpClient(base_url, auth=more.pop("auth", auth), pacing=Pacing(pause=pause), **more)

    context = Context(client, pause, logging.getLogger("test"), 32 * 1024 * 1024, auth)
    return found(parse_config(found.spec, config or {}), secrets, context)


@pytest.fixture
def vendor(settings: Any, monkeypatch: Any) -> Iterator[StartVendor]:
    """`vendor("slack")`: a running description. Nobody waits for a place within a connector's rate limit."""
    if not SPECS.is_dir():
        pytest.skip("needs the vendors' API descriptions (../shared/specs) beside the checkout")
    settings.GROUNDWORK_PRIVATE_HOSTS = [HOST]
    monkeypatch.setattr("connectors.services.opening.admission", lambda *_: lambda: None)
    running: list[Vendor] = []
    with ExitStack() as servers:

        def start(name: str) -> Vendor:
            running.append(servers.enter_context(running_vendor(name)))
            return running[-1]

        yield start
    if faults := [fault for one in running for fault in one.faults]:
        pytest.fail(f"what was asked or answered does not fit: {faults[:5]}")


@contextmanager
def running_vendor(name: str) -> Iterator[Vendor]:
    """Listens on a free port."""
    document = json.loads((SPECS / f"{name}.json").read_text())
    known = Vendor(_mock().App(document))
    server = _Server((HOST, 0), _Handler)
    server.set_app(partial(_serve, known))
    known.url = f"http://{HOST}:{server.server_port}"
    with listening(server):
        yield known


def _serve(known: Vendor, environ: dict[str, Any], start: Any) -> list[bytes]:
    path = environ["PATH_INFO"]
    if path in known.files:
        authorisation = {"authorization": environ.get("HTTP_AUTHORIZATION", "")}
        known.fetched.append((path, authorisation))
        start("200 OK", [("Content-Length", str(len(known.files[path])))])
        return [known.files[path]]
    begun: list[Any] = []

    def note(status: str, headers: list[tuple[str, str]]) -> None:
        begun.append((status, headers))

    try:
        body: list[bytes] = known.app(environ, note)
    except Refusal as refusal:
        body = [json.dumps(refusal.body).encode()]
        headers = {"Content-Type": "application/json", **refusal.headers}
        start(
            f"{refusal.status} refused", [*headers.items(), ("Content-Length", str(len(body[0])))]
        )
        return body
    status, headers = begun[0]
    if b'"mock_error"' in body[0][:20] and not status.startswith("401"):
        known.faults.append(json.loads(body[0]) | {"path": path})
        status = "400 does not fit"  # not repeated, as a 500 would be
    start(status, headers)
    return body


def _asked(request: dict[str, Any]) -> Asked:
    body = request["body"]
    is_json = "json" in request["headers"].get("content-type", "")
    return Asked(
        request["path"],
        dict(request["query"]),
        json.loads(body) if is_json and body else body,
        request["headers"],
    )


def _mock() -> Any:
    spec = importlib.util.spec_from_file_location("vendor_mock", SPECS / "mock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # The mock asks for this format, which jsonschema knows only with a further package.
    module.FormatChecker.checkers.setdefault("date-time", (_is_moment, ValueError))
    return module


def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or parse_datetime(value) is not None


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        environ = super().get_environ()
        environ["RAW_URI"] = self.path
        return environ

    def log_message(self, *_: Any) -> None:
        """Quiet."""
