"""Servers in processes of their own, on free ports."""

from __future__ import annotations

import socket
import subprocess
import time


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until somebody listens."""
    for _ in range(300):
        assert process.poll() is None, "the server has ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")
