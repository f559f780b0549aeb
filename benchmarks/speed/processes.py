"""Memory of the processes, size of the indexes, and a database that remembers nothing."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import connection, connections

from config.embedded.postgres import EmbeddedPostgres
from knowledge.services.base_indexes import index_name

_PROC = Path("/proc")
_DROP = Path("/proc/sys/vm/drop_caches")
_MB = 1024 * 1024


def resident_mb(pid: int) -> float | None:
    """Memory that a process holds; None where the system does not say."""
    held = _status(pid)
    return held["VmRSS"] / 1024 if held else None


def postgres_mb() -> float | None:
    """Memory of all processes of the embedded server, what they share counted once."""
    file = settings.GROUNDWORK_DATA.postgres / "postmaster.pid"
    if not settings.EMBEDDED_DATABASE or not file.exists():
        return None
    head = int(file.read_text().split("\n", 1)[0])
    family = [status for pid in _pids() if (status := _status(pid)) and head in {pid, status["PPid"]}]  # fmt: skip
    if not family:
        return None
    own = sum(status["RssAnon"] for status in family)
    return (own + max(status["RssShmem"] for status in family)) / 1024


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.glob("[0-9]*")]


def _status(pid: int) -> dict[str, int] | None:
    """Numbers of /proc/…/status; sizes are in kilobytes."""
    wanted = ("PPid", "VmRSS", "RssAnon", "RssShmem")
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines)
    if any(name not in found for name in wanted):
        return None  # a thread of the kernel
    return {name: int(found[name].split()[0]) for name in wanted}


def index_mb(base_id: UUID, column: str) -> float:
    """Size of a base's own index."""
    return _size("SELECT pg_relation_size(to_regclass(%s))", index_name(base_id, column))


def rows_mb(base_id: UUID) -> float:
    """Size of a base's chunks as they lie in the table, without indexes."""
    sql = "SELECT sum(pg_column_size(c.*)) FROM knowledge_chunk c WHERE knowledge_base_id = %s"
    return _size(sql, base_id)


def _size(sql: str, parameter: str | UUID) -> float:
    with connection.cursor() as cursor:
        cursor.execute(sql, [parameter])
        size = cursor.fetchone()[0]
    return float(size or 0) / _MB


def deadlocks() -> int:
    """How many deadlocks the database has had."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        count: int = cursor.fetchone()[0]
    return count


def forget_everything() -> bool:
    """Start the embedded database anew, so that its buffers are empty, and drop the system's cache of
    files, which takes root; returns whether that was possible."""
    connections.close_all()
    server = EmbeddedPostgres(settings.GROUNDWORK_DATA)
    server.stop()
    os.sync()  # what is not yet written cannot be dropped
    try:
        _DROP.write_text("3")
        dropped = True
    except OSError:
        dropped = False
    server.start()
    return dropped
