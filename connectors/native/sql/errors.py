"""What the errors of database drivers mean. They are told in the database's own words, without passwords."""

from __future__ import annotations

import re

import psycopg
import pymysql
from sqlalchemy.exc import DBAPIError

from config.errors import (
    AppError,
    CredentialsError,
    InvalidInputError,
    RejectedError,
    TransientError,
)

# Numbers of MySQL: https://mariadb.com/docs/server/reference/error-codes
_REFUSED = frozenset({1045, 1698, 1862, 3118})
_CLOSED = frozenset({1044, 1049, 1130, 2026})
_PASSING = frozenset({1040, 1053, 1205, 1213, 2002, 2003, 2006, 2013, 2055})
# Classes and codes of PostgreSQL: https://www.postgresql.org/docs/current/errcodes-appendix.html
_PASSING_STATES = ("08", "40", "53", "57P")
_CANCELLED = "57014"
# PostgreSQL gives no code for what goes wrong before a session begins, only words, in its language.
_LOGIN_WORDS = re.compile(
    r"password|authentication|role .* does not exist|认证|口令|密码", re.IGNORECASE
)
_CLOSED_WORDS = ("certificate", "does not exist", "does not support SSL", "pg_hba.conf")
_SLOW_WORDS = re.compile(
    r"statement timeout|max_statement_time|execution time|interrupted", re.IGNORECASE
)


class UnreadableRowError(RejectedError):
    """A value among those asked for cannot be read."""


def error_of(error: DBAPIError, password: str) -> AppError:
    """The error that a driver's stands for."""
    said = _said(error, password)
    if _is_unreadable(error, said):
        return UnreadableRowError(f"A value cannot be read: {said}")
    if _SLOW_WORDS.search(said) or _state(error) == _CANCELLED:
        return RejectedError(f"The query took too long: {said}")
    if _is_refused(error, said):
        return CredentialsError(f"The database does not accept the user: {said}")
    if _is_closed(error, said):
        return RejectedError(f"The database cannot be opened: {said}")
    if _is_passing(error, said):
        return TransientError(f"The database cannot be asked: {said}")
    return InvalidInputError(f"The query cannot be run: {said}")


def _is_unreadable(error: DBAPIError, said: str) -> bool:
    is_data = isinstance(error.orig, psycopg.DataError | pymysql.err.DataError)
    return is_data or "Could not decode" in said


def _is_refused(error: DBAPIError, said: str) -> bool:
    return _code(error) in _REFUSED or (_is_beginning(error) and bool(_LOGIN_WORDS.search(said)))


def _is_closed(error: DBAPIError, said: str) -> bool:
    if _is_beginning(error):
        return any(word in said for word in _CLOSED_WORDS)
    return _code(error) in _CLOSED or (_code(error) in _PASSING and "certificate" in said)


def _is_passing(error: DBAPIError, said: str) -> bool:
    is_passing = _code(error) in _PASSING or _state(error).startswith(_PASSING_STATES)
    return is_passing or _is_beginning(error) or "database is locked" in said


def _is_beginning(error: DBAPIError) -> bool:
    """Before PostgreSQL has a session, or when it has lost it."""
    return isinstance(error.orig, psycopg.OperationalError) and not _state(error)


def _code(error: DBAPIError) -> object:
    return error.orig.args[0] if error.orig is not None and error.orig.args else None


def _state(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or ""


def _said(error: DBAPIError, password: str) -> str:
    args = error.orig.args if error.orig is not None else ()
    said = " ".join(str(args[-1] if args else "").split())[:300]
    return (said.replace(password, "…") if password else said) or type(error.orig).__name__
