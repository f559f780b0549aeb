"""Tables in databases of several kinds that a test may change and a connector reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from django.db import connection as django_connection

from tests.connectors.native.mariadb_server import PASSWORD, USER, MariadbServer


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a database. In what `run` is given, `birds` stands for the table's name."""

    config: dict[str, Any]
    proof: dict[str, str]
    execute: Callable[[str], None]
    time: str
    table: str = field(default_factory=lambda: f"birds_{uuid4().hex[:12]}")

    def run(self, *statements: str) -> None:
        """Run statements as the owner of the table."""
        for statement in statements:
            self.execute(statement.replace("birds", self.table))

    def fill(self) -> None:
        """Three rows, two of them of the same moment."""
        self.run(
            f"CREATE TABLE birds (id BIGINT PRIMARY KEY, name VARCHAR(100), note TEXT, "
            f"updated {self.time}, gone INTEGER, readers VARCHAR(200))",
            "INSERT INTO birds (id, name, note, updated) VALUES "
            "(5000000001, 'Herons', 'Herons wade: 100% of them, {all} :of.', '2025-03-01 10:00:00'), "
            "(5000000002, '苍鹭', '苍鹭涉水。', '2025-03-01 10:00:00'), "
            "(5000000003, 'Storks', NULL, '2025-03-02 10:00:00')",
        )


def sqlite_source(folder: Path) -> Source:
    """A file."""
    path = folder / "数据 ?#.db"

    def execute(statement: str) -> None:
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(statement)
        connection.close()

    return Source({"dialect": "sqlite", "database": str(path)}, {}, execute, "TIMESTAMP")


def postgresql_source() -> Source:
    """The database of the test run, outside of the test's transaction."""
    options = django_connection.settings_dict
    host, port = str(options["HOST"]), int(options["PORT"] or 5432)
    name, user = str(options["NAME"]), str(options["USER"])

    def execute(statement: str) -> None:
        with psycopg.connect(
            host=host, port=port, dbname=name, user=user, autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    config = {"dialect": "postgresql", "host": host, "port": port, "database": name, "tls": "off"}
    return Source(config, {"username": user, "password": "any"}, execute, "TIMESTAMPTZ")


def mariadb_source(server: MariadbServer) -> Source:
    """A database of MariaDB, over TCP."""
    config = {
        "dialect": "mariadb", "host": "127.0.0.1", "port": server.port, "database": "quelle", "tls": "off"
    }  # fmt: skip

    def execute(statement: str) -> None:
        server.run("USE quelle", statement)

    return Source(config, {"username": USER, "password": PASSWORD}, execute, "DATETIME(6)")
