"""An OpenAI-compatible embedding endpoint on loopback, with vectors of 64 numbers that mean something:
texts that share pairs of characters are near to each other, in any language."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from tests.loopback import listening

DIMENSIONS = 64
KEY = "sk-loopback"


def vector_of(text: str) -> list[float]:
    """Counts of the text's pairs of characters, hashed."""
    vector = [0.0] * DIMENSIONS
    letters = text.lower().replace("\n", " ")
    for first, second in pairwise(letters):
        if not (first + second).isspace():
            vector[zlib.crc32((first + second).encode()) % DIMENSIONS] += 1.0
    return vector


class EmbeddingServer:
    """Answers properly unless a failure is scripted: (status, headers) for the next requests."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failures: list[tuple[int, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.url = ""

    def settings(self, model: str = "loopback", **changes: Any) -> dict[str, Any]:
        """The settings that make this endpoint the configured one."""
        return {
            "GROUNDWORK_EMBED_BASE_URL": self.url,
            "GROUNDWORK_EMBED_MODEL": model,
            "GROUNDWORK_EMBED_API_KEY": KEY,
            "GROUNDWORK_EMBED_DIMENSIONS": DIMENSIONS,
            "GROUNDWORK_EMBED_MAX_TOKENS": 512,
            **changes,
        }

    def answer(self, key: str, texts: list[str]) -> tuple[int, dict[str, str], dict[str, Any]]:
        """Status, headers and body."""
        with self.lock:
            if key != f"Bearer {KEY}":
                return 401, {}, {"error": {"message": "wrong key", "code": "invalid_api_key"}}
            if self.failures:
                status, headers = self.failures.pop(0)
                return status, headers, {"error": {"message": "scripted", "code": "x"}}
            self.texts += texts
        data = [
            {"object": "embedding", "index": index, "embedding": vector_of(text)}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {}, {"object": "list", "data": data, "model": "m", "usage": usage}


@contextmanager
def running_server() -> Iterator[EmbeddingServer]:
    """Listens on a free port."""
    known = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, answer = known.answer(self.headers["Authorization"], body["input"])
            data = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.url = f"http://127.0.0.1:{server.server_port}/v1"
    with listening(server):
        yield known
