"""A WebDAV server (WsgiDAV) on loopback that serves a folder behind a password."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cheroot.wsgi import Server
from wsgidav.wsgidav_app import WsgiDAVApp

NAME, PASSWORD = "ana", "pa55-word-9"
TOKEN = "token-77"
Application = Callable[[dict[str, Any], Any], Any]


@dataclass(slots=True)
class WebdavServer:
    """Its root is `folder`. `broken` are paths that answer with a status, `moved` those that redirect."""

    folder: Path
    url: str = ""
    broken: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def in_front_of(self, application: Application) -> Application:
        """What is scripted comes first; the token stands for the user."""

        def answer(environ: dict[str, Any], start: Any) -> Any:
            path = environ["PATH_INFO"].encode("latin-1").decode()
            self.asked.append((environ["REQUEST_METHOD"], path))
            if environ.get("HTTP_AUTHORIZATION") == f"Bearer {TOKEN}":
                proof = b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
                environ["HTTP_AUTHORIZATION"] = f"Basic {proof}"
            for prefix, target in self.moved.items():
                if path.startswith(prefix):
                    rest = quote(path.removeprefix(prefix))
                    start("308 Moved", [("Location", target + rest), ("Content-Length", "0")])
                    return [b""]
            status = self.broken.get(path.rstrip("/"))
            if status is not None:
                start(f"{status} Scripted", [("Content-Length", "0")])
                return [b""]
            return application(environ, start)

        return answer


@contextmanager
def webdav_server(folder: Path) -> Iterator[WebdavServer]:
    """Listens on a free port."""
    known = WebdavServer(folder)
    application = WsgiDAVApp(
        {
            "provider_mapping": {"/": str(folder)},
            "simple_dc": {"user_mapping": {"*": {NAME: {"password": PASSWORD}}}},
            "http_authenticator": {"accept_digest": False, "default_to_digest": False},
            "verbose": 0,
            "logging": {"enable": False},
        }
    )
    server = Server(("127.0.0.1", 0), known.in_front_of(application), numthreads=2)
    server.prepare()
    known.url = f"http://127.0.0.1:{server.bind_addr[1]}"
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.stop()
        thread.join()
