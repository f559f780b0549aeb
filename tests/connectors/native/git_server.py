"""Repositories made by git itself, and git's own HTTP server on loopback behind a password."""

from __future__ import annotations

import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.loopback import listening

TOKEN = "secret-token-9"
_PATH = f"{os.defpath}:/usr/local/bin"
_AUTHORIZATION = f"Basic {b64encode(f'x-access-token:{TOKEN}'.encode()).decode()}"


class Repository:
    """A repository with a work tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "--quiet", "-b", "main", str(path))

    def git(self, *arguments: str) -> str:
        """Run git in it."""
        self.path.mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": _PATH, "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "安娜", "GIT_AUTHOR_EMAIL": "ana@example.com",
            "GIT_COMMITTER_NAME": "Bo", "GIT_COMMITTER_EMAIL": "bo@example.com",
        }  # fmt: skip
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def write(self, name: str | bytes, content: str | bytes) -> None:
        """Write a file."""
        path = self.path / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str = "Change") -> str:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@dataclass
class GitServer:
    """What it is like and what it was asked."""

    url: str = ""
    status: int = 0  # answered instead, when not 0
    location: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def git_server(root: Path, *, open_to_all: bool = False) -> Iterator[GitServer]:
    """Serves the repositories below a folder."""
    known = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def answer(self) -> None:
            known.asked.append(self.path)
            if known.status:
                self.refuse(known.status, "Location", known.location)
            elif not open_to_all and self.headers["Authorization"] != _AUTHORIZATION:
                self.refuse(401, "WWW-Authenticate", 'Basic realm="git"')
            else:
                self.serve()

        def refuse(self, status: int, name: str, value: str) -> None:
            self.send_response(status)
            self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, content = _backend(root, self, body)
            self.send_response(status)
            for name, value in [*headers, ("Content-Length", str(len(content)))]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.url = f"http://127.0.0.1:{server.server_port}"
    with listening(server):
        yield known


def _backend(
    root: Path, asked: BaseHTTPRequestHandler, body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    parts = urlsplit(asked.path)
    environment = {
        "PATH": _PATH, "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": parts.path, "QUERY_STRING": parts.query, "REQUEST_METHOD": asked.command,
        "CONTENT_TYPE": asked.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    pairs = [line.partition(": ")[::2] for line in head.decode().splitlines()]
    status = next((value for name, value in pairs if name == "Status"), "200")
    return int(status.split()[0]), [pair for pair in pairs if pair[0] != "Status"], content
