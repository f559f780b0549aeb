"""Django's `migrate`, one at a time: processes that start together do not race for the schema."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import connections

_LOCK = 0x67726F756E64  # "ground"


class Command(MigrateCommand):
    """Waits for its turn, then migrates."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's command while holding the lock."""
        with _turn(options["database"]):
            super().handle(*args, **options)


@contextmanager
def _turn(database: str) -> Iterator[None]:
    connection = connections[database]
    # Asked for again and again: a waiting statement would hold a snapshot, and an index that the
    # other process builds concurrently would wait for that snapshot for ever.
    while not _ask(connection, "SELECT pg_try_advisory_lock(%s)"):
        time.sleep(0.2)
    try:
        yield
    finally:
        _ask(connection, "SELECT pg_advisory_unlock(%s)")


def _ask(connection: Any, query: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(query, [_LOCK])
        return bool(cursor.fetchone()[0])
