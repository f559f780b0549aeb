"""A database of its own for a peer, with pgvector, on the project's embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings
from psycopg import sql

from benchmarks.peers.environments import NotRunError


@contextmanager
def own_database(name: str) -> Iterator[str]:
    """The address of an empty database, dropped afterwards. Raises `NotRunError` without the server."""
    if not settings.EMBEDDED_DATABASE:
        raise NotRunError("needs the embedded PostgreSQL: unset DATABASE_URL")
    server = settings.GROUNDWORK_DATA.database_url()
    address = server.replace("/groundwork?", f"/{name}?")
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(drop)
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(address) as inside:
                inside.execute("CREATE EXTENSION vector")
            yield address
        finally:
            connection.execute(drop)
