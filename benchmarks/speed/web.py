"""The real web server in a process of its own, and clients that search over HTTP with kept connections."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from benchmarks.ground import ROOT
from benchmarks.speed.material import Question
from benchmarks.speed.measurement import Times
from config.env import child_environment

_START_TIMEOUT_S = 120.0
_HOST = "127.0.0.1"
_APART = 7  # questions between the beginnings of two clients


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running server."""

    port: int
    pid: int


@contextmanager
def web_server(threads: int) -> Iterator[WebServer]:
    """The product's ASGI application under daphne over the same data folder, as `make up` starts it."""
    port = _free_port()
    command = [sys.executable, "-m", "daphne", "--bind", _HOST, "--port", str(port), "config.asgi:application"]  # fmt: skip
    with (settings.GROUNDWORK_DATA.root / "speed-web.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=ROOT, env=environment(threads, GROUNDWORK_PORT=str(port)),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            _wait_until_well(process, port)
            yield WebServer(port, process.pid)
        finally:
            stop(process)


def environment(threads: int, **extra: str) -> dict[str, str]:
    """What a process of the product is started with; `threads` are those of its embedder."""
    libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    names = (*libraries, "GROUNDWORK_EMBED_THREADS")
    return child_environment(PYTHONWARNINGS="ignore", **dict.fromkeys(names, str(threads)), **extra)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process in order, or after a while anyhow."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_well(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        link = http.client.HTTPConnection(_HOST, port, timeout=10)
        try:
            link.request("GET", "/healthz")
            if link.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
        finally:
            link.close()
    raise RuntimeError("The web server did not start; see speed-web.log in the data folder.")


class Client:
    """One connection that is kept: `search` asks and reads the whole answer."""

    def __init__(self, server: WebServer) -> None:
        self._link = http.client.HTTPConnection(_HOST, server.port, timeout=120)

    def search(self, key: str, base: str, question: Question) -> dict[str, Any]:
        """The answer in mode `instant`. Raises `RuntimeError` when it is an error."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = {"query": question.text, "knowledge_bases": [base], "mode": "instant", "limit": 10}
        self._link.request("POST", "/api/v1/search/", json.dumps(asked), headers)
        response = self._link.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"The search was answered with {response.status}: {body[:300]!r}")
        answer: dict[str, Any] = json.loads(body)
        return answer


@dataclass(slots=True)
class Load:
    """What several clients got done at the same time."""

    seconds: float = 0.0
    ms: list[float] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @property
    def times(self) -> Times:
        """How long each answer took."""
        return Times(self.ms)

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return len(self.ms) / self.seconds


def put_load(asks: Sequence[Callable[[int], object]], seconds: float) -> Load:
    """Let all clients ask at once, one question after the other; each is a call with a question's number
    and begins with another one. Raises the first error of any."""
    load, begin = Load(), time.perf_counter()

    def run(ask: Callable[[int], object], number: int) -> None:
        while (asked := time.perf_counter()) - begin < seconds and not load.errors:
            try:
                ask(number)
            except Exception as error:  # noqa: BLE001 - raised below, by the thread that waits
                load.errors.append(error)
                return
            load.ms.append((time.perf_counter() - asked) * 1000)
            number += 1

    threads = [
        threading.Thread(target=run, args=(ask, place * _APART)) for place, ask in enumerate(asks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - begin
    if load.errors:
        raise load.errors[0]
    return load
