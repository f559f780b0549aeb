"""A website on loopback whose pages a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loopback import listening


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered at a path."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def page(*links: str, text: str = "", title: str = "", head: str = "", **headers: str) -> Reply:
    """An HTML page in UTF-8."""
    anchors = "".join(f'<a href="{link}">to</a> ' for link in links)
    markup = (
        f"<html><head><meta charset=utf-8><title>{title}</title>{head}</head>"
        f"<body><p>{text or title or 'Herons wade.'}</p>{anchors}</body></html>"
    )
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(markup.encode(), headers={"Content-Type": "text/html; charset=utf-8", **named})


class Site:
    """Its pages, and what it was asked. Answers have an ETag unless `is_tagged` is off."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, Reply] = {}
        self.otherwise: Callable[[str], Reply] = lambda _path: Reply(b"Not here", 404)
        self.is_tagged = True
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []

    def reply(self, path: str, headers: dict[str, str]) -> Reply:
        """The answer to a request."""
        self.asked.append(path)
        self.headers.append(headers)
        reply = self.pages.get(path) or self.otherwise(path)
        if reply.status != 200 or not self.is_tagged:
            return reply
        etag = f'"{sha256(reply.body).hexdigest()[:12]}"'
        if headers.get("If-None-Match") == etag:
            return Reply(b"", 304, {"ETag": etag})
        return Reply(reply.body, 200, {**reply.headers, "ETag": etag})

    def forget(self) -> list[str]:
        """What it was asked so far, without robots.txt; then nothing."""
        asked, self.asked, self.headers = self.asked, [], []
        return [path for path in asked if path not in {"/robots.txt", "/sitemap.xml"}]


@contextmanager
def running_site() -> Iterator[Site]:
    """Listens on a free port."""
    known = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = known.reply(self.path, dict(self.headers.items()))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.url = f"http://127.0.0.1:{server.server_port}"
    with listening(server):
        yield known
