"""Searching sources themselves: side by side, each with its own time, in one shape."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import connections as database_connections

from config.errors import AppError, InvalidInputError
from connectors.base import LiveHit, LiveSearch
from connectors.models import Connection
from connectors.services.opening import Patience, open_connector

logger = logging.getLogger(__name__)

_SIDE_BY_SIDE = 16
_ATTEMPTS = 2  # somebody waits


class State(StrEnum):
    """How the search of one source ended."""

    OK = "ok"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What one source gave, or why it gave nothing. `ms` is how long it took."""

    connection: Connection
    state: State
    ms: float
    hits: list[LiveHit] = field(default_factory=list)
    error: str = ""


def search_sources(
    connections: Sequence[Connection], query: str, limit: int, *, timeout_s: float
) -> list[SourceAnswer]:
    """The answers of all sources, in the order asked for. One that fails or is late loses nobody else
    anything. Not to be called in a transaction: it waits for the sources."""
    if not connections:
        return []
    pool = ThreadPoolExecutor(min(len(connections), _SIDE_BY_SIDE), thread_name_prefix="live")
    started = time.perf_counter()
    futures = [pool.submit(_search, one, query, limit, timeout_s) for one in connections]
    answers = [
        _awaited(future, one, started, timeout_s)
        for one, future in zip(connections, futures, strict=True)
    ]
    pool.shutdown(wait=False, cancel_futures=True)
    return answers


def _awaited(
    future: Future[SourceAnswer], connection: Connection, started: float, timeout_s: float
) -> SourceAnswer:
    left_s = started + timeout_s - time.perf_counter()
    try:
        return future.result(timeout=max(left_s, 0.0))
    except LateError:
        message = f"No answer within {timeout_s:g} seconds."
        return SourceAnswer(connection, State.TIMEOUT, timeout_s * 1000, error=message)


def _search(connection: Connection, query: str, limit: int, timeout_s: float) -> SourceAnswer:
    started = time.perf_counter()
    try:
        hits = _hits(connection, query, limit, timeout_s)
        state, error = (State.OK if hits else State.EMPTY), ""
    except AppError as failure:
        hits, state, error = [], State.ERROR, failure.message
    finally:
        database_connections.close_all()  # this thread's, if tokens were renewed
    ms = round((time.perf_counter() - started) * 1000, 1)
    return SourceAnswer(connection, state, ms, hits, error)


def _hits(connection: Connection, query: str, limit: int, timeout_s: float) -> list[LiveHit]:
    patience = Patience(attempts=_ATTEMPTS, read_timeout_s=timeout_s)
    connector = open_connector(connection, patience=patience)
    if not isinstance(connector, LiveSearch):
        raise InvalidInputError(f"{connector.spec.name} cannot be searched at the source.")
    try:
        return connector.search(query, limit)[:limit]
    except AppError:
        raise
    except Exception as error:  # a fault of one connector must not cost the other answers
        logger.exception("Searching connection %s failed", connection.id)
        raise AppError("Something went wrong on our side; see the log.") from error
