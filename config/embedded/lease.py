"""Holding the embedded servers: whoever comes first starts them, whoever leaves last stops them.

Each process holds a shared lock on one file. The kernel drops the lock of a killed process, so a
crash never leaves a count behind.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from config.embedded.paths import DataFolder
from config.embedded.postgres import EmbeddedPostgres
from config.embedded.valkey import EmbeddedValkey


@contextmanager
def running_servers(folder: DataFolder, *, database: bool, broker: bool) -> Iterator[None]:
    """Keep the embedded servers up while the block runs. Does nothing for servers that are outside."""
    if not (database or broker):
        yield
        return
    folder.create()
    servers: list[EmbeddedPostgres | EmbeddedValkey] = []
    if database:
        servers.append(EmbeddedPostgres(folder))
    if broker:
        servers.append(EmbeddedValkey(folder))
    with (
        (folder.root / "servers.lock").open("a") as lock,
        (folder.root / "start.lock").open("a") as start,
    ):
        with _locked(start):
            fcntl.flock(lock, fcntl.LOCK_SH)
            for server in servers:
                server.start()
        try:
            yield
        finally:
            with _locked(start):
                if _is_last(lock):
                    for server in servers:
                        server.stop()


@contextmanager
def _locked(file: IO[str]) -> Iterator[None]:
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _is_last(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
