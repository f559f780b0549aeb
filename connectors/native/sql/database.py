"""A database from which rows are read, and nothing else.

What keeps it to reading: the query stands as a subselect in a statement of ours; each driver sends one statement
at a time; sessions are read only; and SQLite, which would otherwise open any file, is told what a statement may
do. Statements end after a minute.
"""

from __future__ import annotations

import re
import sqlite3
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import psycopg
import pymysql
from pydantic import SecretStr
from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    TextualSelect,
    column,
    create_engine,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import literal_column

from config.addresses import reachable_address, tls_context, trusted_certificates
from config.errors import InvalidInputError, RejectedError
from connectors.local_folders import allowed_folder
from connectors.native.sql.errors import UnreadableRowError, error_of

Dialect = Literal["postgresql", "mysql", "mariadb", "sqlite"]
Tls = Literal["verify", "encrypt", "off"]
Row = Mapping[str, Any]

_DRIVERS = {
    "postgresql": "postgresql+psycopg://",
    "mysql": "mysql+pymysql://",
    "mariadb": "mysql+pymysql://",
    "sqlite": "sqlite://",
}
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlite": 0}
_SSL_MODES = {"verify": "verify-full", "encrypt": "require", "off": "disable"}
_CONNECT_S, _STATEMENT_S = 10, 60
_READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_PRAGMAS = frozenset({"read_uncommitted", "data_version"})  # of SQLAlchemy, and of full-text tables
_LEADING = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(select|with|values|table)\b", re.IGNORECASE | re.DOTALL
)
# MySQL runs what stands in such comments, and writes files by such words.
_TRICKS = re.compile(r"/\*M?!|\binto\s+(?:outfile|dumpfile)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is and who reads it. `name` is the path of the file for SQLite."""

    dialect: Dialect
    name: str
    host: str = ""
    port: int | None = None
    tls: Tls = "verify"
    user: str = ""
    password: SecretStr = field(default_factory=lambda: SecretStr(""))


class Database:
    """Reads from one query as from a table."""

    def __init__(self, place: Place, query: str) -> None:
        self._place = place
        self._table = _subselect(query)
        self._engine = _engine(place)

    def columns(self) -> list[str]:
        """The names of the query's columns."""
        with self._session() as session:
            return list(session.execute(self._select().limit(0)).keys())

    def rows(
        self,
        *conditions: ColumnElement[bool],
        order: Sequence[ColumnElement[Any]] = (),
        limit: int,
        only: Sequence[str] = (),
    ) -> list[Row]:
        """Some rows, `only` some of their columns. Raises `UnreadableRowError`."""
        statement = self._select(only).where(*conditions).order_by(*order).limit(limit)
        with self._session() as session:
            return [dict(row) for row in session.execute(statement).mappings()]

    def greatest(self, name: str) -> Any:
        """The greatest value of a column; None without rows."""
        ordered = self.rows(
            column(name).is_not(None), order=[column(name).desc()], limit=1, only=[name]
        )
        return ordered[0][name] if ordered else None

    def _select(self, only: Sequence[str] = ()) -> Select[Any]:
        columns: list[ColumnElement[Any]] = [column(name) for name in only] or [literal_column("*")]
        return select(*columns).select_from(self._table)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        with self._translated(), self._engine.connect() as session:
            yield session

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the drivers as ours, not chained: they quote statements and values."""
        try:
            yield
        except DBAPIError as error:
            secret = self._place.password.get_secret_value()
            raise error_of(error, secret) from None
        except (UnicodeError, ValueError, OverflowError, ArithmeticError) as error:
            raise UnreadableRowError(f"A value cannot be read ({type(error).__name__}).") from None
        except SQLAlchemyError as error:
            raise InvalidInputError(f"The query cannot be run ({type(error).__name__}).") from None


def _subselect(query: str) -> Any:
    """The query as something to select from. Colons in it mean nothing to SQLAlchemy."""
    bare = query.strip().rstrip(";").rstrip()
    if not _LEADING.match(bare):
        raise InvalidInputError("The query has to be one SELECT.")
    if _TRICKS.search(bare):
        raise InvalidInputError("The query has to be one plain SELECT that writes nothing.")
    textual: TextualSelect = text(bare.replace(":", "\\:") + "\n").columns()
    return textual.subquery("source")


def _engine(place: Place) -> Engine:
    creators: dict[str, Callable[[Place], Any]] = {
        "postgresql": _postgresql,
        "mysql": _mysql,
        "mariadb": _mysql,
        "sqlite": _sqlite,
    }
    # No pool: between two pages of rows there may be minutes of work on what they hold.
    creator = creators[place.dialect]
    return create_engine(
        _DRIVERS[place.dialect], creator=lambda: creator(place), poolclass=NullPool
    )


def _postgresql(place: Place) -> psycopg.Connection[Any]:
    port = place.port or _PORTS["postgresql"]
    address = reachable_address(place.host, port)
    secret = place.password.get_secret_value()
    options: dict[str, Any] = {"hostaddr": address} if address != place.host else {}
    if place.tls == "verify":
        options["sslrootcert"] = trusted_certificates()
    connection = psycopg.connect(
        host=place.host, port=port, dbname=place.name, user=place.user,
        password=secret, passfile="/dev/null",
        sslmode=_SSL_MODES[place.tls], connect_timeout=_CONNECT_S, client_encoding="utf8",
        prepare_threshold=None,  # poolers do not keep prepared statements
        application_name="Groundwork", **options,
    )  # fmt: skip
    connection.execute(f"SET statement_timeout = '{_STATEMENT_S}s'")
    connection.commit()
    connection.read_only = True
    return connection


def _mysql(place: Place) -> pymysql.Connection[Any]:
    port = place.port or _PORTS["mysql"]
    address = reachable_address(place.host, port)
    context = None if place.tls == "off" else tls_context(place.host)
    if context is not None and place.tls == "encrypt":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    is_socket = address.startswith("/")
    secret: Any = place.password.get_secret_value().encode()  # of a text it would take Latin-1 only
    connection = pymysql.connect(
        host=None if is_socket else address, unix_socket=address if is_socket else None, port=port,
        user=place.user, password=secret, database=place.name,
        charset="utf8mb4", connect_timeout=_CONNECT_S, read_timeout=_STATEMENT_S + 10,
        ssl=context, ssl_disabled=context is None, init_command="SET SESSION TRANSACTION READ ONLY",
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        server = (cursor.fetchone() or ("",))[0]
        is_mariadb = "mariadb" in str(server).lower()
        limit = (
            f"max_statement_time = {_STATEMENT_S}"
            if is_mariadb
            else f"max_execution_time = {_STATEMENT_S * 1000}"
        )
        cursor.execute(f"SET SESSION {limit}")
    return connection


def _sqlite(place: Place) -> sqlite3.Connection:
    file = Path(place.name)
    real = allowed_folder(str(file.parent)) / file.name
    if real.is_symlink() or not real.is_file():
        # Perhaps a share that is not mounted: nothing is taken for deleted.
        raise RejectedError(f"{file.name} is not there, or is no file.")
    connection = sqlite3.connect(f"file:{quote(str(real))}?mode=ro", uri=True, timeout=_CONNECT_S)
    connection.set_authorizer(_authorized)
    end = time.monotonic() + _STATEMENT_S
    connection.set_progress_handler(lambda: time.monotonic() > end, 100_000)
    return connection


def _authorized(action: int, name: str | None, *_: str | None) -> int:
    """What SQLite asks about each part of a statement."""
    is_harmless = action == sqlite3.SQLITE_PRAGMA and name in _PRAGMAS
    return sqlite3.SQLITE_OK if action in _READS or is_harmless else sqlite3.SQLITE_DENY
