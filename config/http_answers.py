"""What the answers of other people's servers mean, and how their bodies are taken."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import requests
from django.utils import timezone

from config.errors import (
    CredentialsError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)

_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_PIECE = 256 * 1024
_IN_MEMORY = 2 * 1024 * 1024
_FIRST_UNIX_TIME = 1_000_000_000  # a smaller X-RateLimit-Reset counts the seconds left
_TRANSIENT = frozenset({408, 409, 423, 425, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529})


def parse_json(response: requests.Response) -> Any:
    """The body as JSON. Raises `TransientError` when it is something else, as a proxy's page."""
    try:
        return response.json()
    except ValueError:
        raise TransientError(f"{host_of(str(response.url))} did not answer with JSON.") from None


def error_of(response: requests.Response) -> RemoteError:
    """The error that an answer stands for. It names host and status, never the body or the query, which
    may hold secrets."""
    status, host = response.status_code, host_of(str(response.url))
    if status == 401:
        return CredentialsError(f"{host} does not accept the credentials (401).")
    if status == 429 or (status in {403, 503} and _asks_to_wait(response.headers)):
        wait_s = retry_after_s(response.headers)
        return RateLimitedError(f"{host} asks to slow down ({status}).", wait_s)
    if status in _TRANSIENT:
        return TransientError(f"{host} has a problem of its own ({status}).")
    known = {403: "does not allow this", 404: "does not have this", 410: "has this no longer"}
    message = f"{host} {known.get(status, 'refuses the request')} ({status})."
    return RejectedError(message, status=status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `X-RateLimit-Reset` as a Unix time or,
    as some have it, in seconds."""
    text = headers.get("Retry-After", "").strip()
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment - timezone.now()).total_seconds())
    except (TypeError, ValueError):
        pass
    reset = _number(_of_rate_limit(headers, "Reset"))
    if reset is None or _of_rate_limit(headers, "Remaining", "0") != "0":
        return None
    return max(0.0, reset - time.time()) if reset > _FIRST_UNIX_TIME else reset


def _asks_to_wait(headers: Mapping[str, str]) -> bool:
    """Whether a refusal is a rate limit. GitHub: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"""
    return "Retry-After" in headers or _of_rate_limit(headers, "Remaining") == "0"


def _of_rate_limit(headers: Mapping[str, str], name: str, default: str = "") -> str:
    """Most write X-RateLimit-Reset, some (X) x-rate-limit-reset."""
    return headers.get(f"X-RateLimit-{name}") or headers.get(f"X-Rate-Limit-{name}") or default


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def read_whole(response: requests.Response) -> requests.Response:
    """Bound what a server may make us hold; the content is then where `requests` keeps it."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        copy_body(response, cast(BinaryIO, file), _MAX_ANSWER_BYTES)
        file.seek(0)
        response._content = file.read()  # noqa: SLF001 - as its own `content` does
    return response


def copy_body(response: requests.Response, file: BinaryIO, max_bytes: int) -> None:
    """The body into a file. Raises `RejectedError` beyond `max_bytes`."""
    size = 0
    try:
        for piece in response.iter_content(_PIECE):
            size += len(piece)
            if size > max_bytes:
                raise RejectedError(
                    f"{host_of(str(response.url))} sent more than {max_bytes // 1024 // 1024} MB."
                )
            file.write(piece)
    except requests.RequestException:
        raise TransientError(f"{host_of(str(response.url))} broke off its answer.") from None


def host_of(url: str) -> str:
    """The host of an address, for messages: never its path or query."""
    try:
        return urlsplit(url).hostname or "The address"
    except ValueError:
        return "The address"
