"""Requests to other people's servers: bounded, retried, kept from private addresses.

`HttpClient` is the only way out of the process for connectors and webhooks. Every address is resolved
and checked before it is connected to, redirects included, so that nobody reaches the services of this
network by naming them (server-side request forgery); the operator may open hosts by name.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.utils import timezone
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import AuthBase
from requests_hardened.ip_filter import InvalidIPAddress
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from config.errors import (
    CredentialsError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)

_ATTEMPTS = 5
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 20.0
_LONGEST_RETRY_AFTER_S = 60.0  # a longer one is the caller's to wait for, without holding a worker
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10.0, 60.0
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_MAX_REDIRECTS = 10
_PIECE = 256 * 1024
_IN_MEMORY = 2 * 1024 * 1024
_AGENT = "Groundwork/0.1 (+knowledge platform for agents)"
_TRANSIENT = frozenset({408, 409, 423, 425, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529})
# Never sent on to another host by a redirect.
_SECRET_HEADERS = (
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "Api-Key",
    "X-Auth-Token",
    "Private-Token",
)


class Renewable(Protocol):
    """Credentials that can be exchanged for fresh ones when the server refuses them."""

    def renew(self) -> bool:
        """Get fresh ones; False when there is no way to."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """How a client waits: `pause` sleeps and may raise to end the work; `admit` waits for a place within a
    rate limit that other processes share."""

    pause: Callable[[float], None] = time.sleep
    admit: Callable[[], None] = lambda: None


class HeaderAuth(AuthBase):
    """Proves who asks by one header, which is not sent on to another host."""

    def __init__(self, header: str, value: str) -> None:
        self.header = header
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by `requests` for each request."""
        request.headers[self.header] = self._value
        return request


class _GuardedSession(requests.Session):
    """Connects to public addresses, and to the hosts that the operator names."""

    def __init__(self, secret_headers: tuple[str, ...]) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = _MAX_REDIRECTS
        self._secret_headers = secret_headers
        self._open = HTTPAdapter()
        self._guarded = {
            "http": IPFilterAdapter(is_https_proto=False),
            "https": IPFilterAdapter(is_https_proto=True),
        }

    def get_adapter(self, url: str | bytes) -> BaseAdapter:
        """By the host that is really connected to: a name in front of an @ is not one."""
        parts = urlsplit(url if isinstance(url, str) else url.decode())
        if parts.scheme not in self._guarded:
            raise RejectedError(f"Only http and https addresses are fetched, not {parts.scheme}:.")
        if is_open_host(parts.hostname, parts.port):
            return self._open
        adapter: BaseAdapter = self._guarded[parts.scheme]
        return adapter

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Drop every secret when a redirect leads to another host."""
        if self.should_strip_auth(str(response.request.url), str(prepared_request.url)):
            for name in self._secret_headers:
                prepared_request.headers.pop(name, None)


def is_open_host(hostname: str | None, port: int | None) -> bool:
    """Whether the operator has opened this host, which may lie in a private network."""
    opened: list[str] = settings.GROUNDWORK_PRIVATE_HOSTS
    host = hostname or ""
    return host in opened or f"{host}:{port}" in opened


class HttpClient:
    """One source's client. Not for use by several threads at a time.

    Answers with an error status raise the `RemoteError` that says what to do: 401 `CredentialsError`,
    429 `RateLimitedError`, timeouts and 5xx `TransientError` (after retries with full jitter), other 4xx
    `RejectedError`.
    """

    def __init__(
        self,
        base_url: str = "",
        *,
        auth: AuthBase | None = None,
        headers: Mapping[str, str] | None = None,
        secret_headers: tuple[str, ...] = (),
        pacing: Pacing | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._auth = auth
        self._pacing = pacing or Pacing()
        own = (auth.header,) if isinstance(auth, HeaderAuth) else ()
        self._session = _GuardedSession((*_SECRET_HEADERS, *secret_headers, *own))
        self._session.headers.update({"User-Agent": _AGENT, **(headers or {})})

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        expected: frozenset[int] = frozenset(),
    ) -> requests.Response:
        """An answer read whole, at most 64 MB. A status in `expected` is returned, not raised."""
        response = self._ask(
            method, url, expected, params=params, json=json, data=data, headers=headers
        )
        with response:
            _read_whole(response)
        return response

    def get_json(self, url: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The parsed answer to a GET. Raises `TransientError` when it is not JSON."""
        return parse_json(self.request("GET", url, params=params, **more))

    def post_json(self, url: str, json: Any = None, **more: Any) -> Any:
        """The parsed answer to a POST of JSON."""
        return parse_json(self.request("POST", url, json=json, **more))

    @contextmanager
    def download(self, url: str, *, max_bytes: int, **more: Any) -> Iterator[BinaryIO]:
        """The body as a file, on disk when it is large. Raises `RejectedError` beyond `max_bytes`."""
        response = self._ask(more.pop("method", "GET"), url, frozenset(), **more)
        with response, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            _copy(response, cast(BinaryIO, file), max_bytes)
            file.seek(0)
            yield cast(BinaryIO, file)

    def _ask(
        self, method: str, url: str, expected: frozenset[int], **parts: Any
    ) -> requests.Response:
        target = url if "://" in url else f"{self._base_url}/{url.lstrip('/')}"
        renewed = False
        attempt = 1
        while True:
            try:
                return self._once(method, target, expected, parts)
            except CredentialsError:
                if renewed or not self._renew():
                    raise
                renewed = True
            except RateLimitedError as error:
                wait_s = error.retry_after_s
                if attempt >= _ATTEMPTS or (wait_s or 0) > _LONGEST_RETRY_AFTER_S:
                    raise
                self._pacing.pause(wait_s if wait_s is not None else _backoff(attempt))
            except TransientError:
                if attempt >= _ATTEMPTS:
                    raise
                self._pacing.pause(_backoff(attempt))
            attempt += 1

    def _once(
        self, method: str, url: str, expected: frozenset[int], parts: Mapping[str, Any]
    ) -> requests.Response:
        self._pacing.admit()
        try:
            response = self._session.request(
                method, url, auth=self._auth, stream=True,
                timeout=(_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S), **parts,
            )  # fmt: skip
        except InvalidIPAddress as error:
            raise RejectedError(
                f"{_host(url)} lies in a private network. The operator can open it with "
                "GROUNDWORK_PRIVATE_HOSTS."
            ) from error
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema) as error:
            raise RejectedError(f"{url[:200]!r} is no address.") from error
        except requests.TooManyRedirects as error:
            raise RejectedError(f"{_host(url)} redirects in a circle.") from error
        except requests.RequestException as error:
            raise TransientError(
                f"{_host(url)} cannot be reached ({type(error).__name__})."
            ) from error
        if response.status_code < 400 or response.status_code in expected:
            return response
        with response:
            raise error_of(response)

    def _renew(self) -> bool:
        renew = getattr(self._auth, "renew", None)
        return bool(renew and renew())


def parse_json(response: requests.Response) -> Any:
    """The body as JSON. Raises `TransientError` when it is something else, as a proxy's page."""
    try:
        return response.json()
    except ValueError as error:
        raise TransientError(f"{_host(str(response.url))} did not answer with JSON.") from error


def error_of(response: requests.Response) -> RemoteError:
    """The error that an answer stands for. It names host and status, never the body or the query, which
    may hold secrets."""
    status, host = response.status_code, _host(str(response.url))
    if status == 401:
        return CredentialsError(f"{host} does not accept the credentials (401).")
    if status == 429 or (status in {403, 503} and "Retry-After" in response.headers):
        wait_s = retry_after_s(response.headers)
        return RateLimitedError(f"{host} asks to slow down ({status}).", wait_s)
    if status in _TRANSIENT:
        return TransientError(f"{host} has a problem of its own ({status}).")
    known = {403: "does not allow this", 404: "does not have this", 410: "has this no longer"}
    message = f"{host} {known.get(status, 'refuses the request')} ({status})."
    return RejectedError(message, status=status)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """`Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `X-RateLimit-Reset` as a Unix time."""
    text = headers.get("Retry-After", "").strip()
    if text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment - timezone.now()).total_seconds())
    except (TypeError, ValueError):
        pass
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdigit():
        return max(0.0, int(reset) - time.time())
    return None


def _backoff(attempt: int) -> float:
    """Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/."""
    return random.uniform(0, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt))  # noqa: S311


def _read_whole(response: requests.Response) -> None:
    """Bound what a server may make us hold; the content is then where `requests` keeps it."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        _copy(response, cast(BinaryIO, file), _MAX_ANSWER_BYTES)
        file.seek(0)
        response._content = file.read()  # noqa: SLF001 - as its own `content` does


def _copy(response: requests.Response, file: BinaryIO, max_bytes: int) -> None:
    size = 0
    try:
        for piece in response.iter_content(_PIECE):
            size += len(piece)
            if size > max_bytes:
                raise RejectedError(
                    f"{_host(str(response.url))} sent more than {max_bytes // 1024 // 1024} MB."
                )
            file.write(piece)
    except requests.RequestException as error:
        raise TransientError(f"{_host(str(response.url))} broke off its answer.") from error


def _host(url: str) -> str:
    return urlsplit(url).hostname or "The address"
