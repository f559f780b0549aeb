"""Requests to other people's servers: bounded, retried, kept from private addresses.

`HttpClient` is the only way out of the process for connectors and webhooks. Every address is resolved
and checked before it is connected to, redirects included, so that nobody reaches the services of this
network by naming them (server-side request forgery); the operator may open hosts by name.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar, cast

import requests
from requests.auth import AuthBase
from requests_hardened.ip_filter import InvalidIPAddress

from config.errors import CredentialsError, RateLimitedError, RejectedError, TransientError
from config.http_answers import copy_body, error_of, host_of, parse_json, read_whole
from config.http_guard import GuardedSession

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 20.0
_LONGEST_RETRY_AFTER_S = 60.0  # a longer one is the caller's to wait for, without holding a worker
_CONNECT_TIMEOUT_S = 10.0
_IN_MEMORY = 2 * 1024 * 1024
_AGENT = "Groundwork/0.1 (+knowledge platform for agents)"

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_Taken = TypeVar("_Taken")


@dataclass(frozen=True, slots=True)
class Pacing:
    """How a client waits: `pause` sleeps and may raise to end the work; `admit` waits for a place within a
    rate limit that other processes share. It asks up to `attempts` times."""

    pause: Callable[[float], None] = time.sleep
    admit: Callable[[], None] = lambda: None
    attempts: int = 5
    read_timeout_s: float = 60.0


class HeaderAuth(AuthBase):
    """Proves who asks by one header, which is not sent on to another host."""

    def __init__(self, header: str, value: str) -> None:
        self.header = header
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by `requests` for each request."""
        request.headers[self.header] = self._value
        return request


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
        follow_redirects: bool = True,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._auth = auth
        self._pacing = pacing or Pacing()
        self._options: dict[str, Any] = {
            "auth": auth,
            "stream": True,
            "timeout": (_CONNECT_TIMEOUT_S, self._pacing.read_timeout_s),
            "allow_redirects": follow_redirects,
        }
        own = (auth.header,) if isinstance(auth, HeaderAuth) else ()
        self._session = GuardedSession((*secret_headers, *own))
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
        parts = {"params": params, "json": json, "data": data, "headers": headers}
        return self._ask(method, url, expected, read_whole, parts)

    def get_json(self, url: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The parsed answer to a GET. Raises `TransientError` when it is not JSON."""
        return parse_json(self.request("GET", url, params=params, **more))

    def post_json(self, url: str, json: Any = None, **more: Any) -> Any:
        """The parsed answer to a POST of JSON."""
        return parse_json(self.request("POST", url, json=json, **more))

    @contextmanager
    def download(self, url: str, *, max_bytes: int, **more: Any) -> Iterator[BinaryIO]:
        """The body as a file, on disk when it is large. Raises `RejectedError` beyond `max_bytes`."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spooled:
            file = cast(BinaryIO, spooled)

            def take(response: requests.Response) -> None:
                file.seek(0)
                file.truncate()
                copy_body(response, file, max_bytes)

            self._ask(more.pop("method", "GET"), url, frozenset(), take, more)
            file.seek(0)
            yield file

    def _ask(
        self,
        method: str,
        url: str,
        expected: frozenset[int],
        take: Callable[[requests.Response], _Taken],
        parts: Mapping[str, Any],
    ) -> _Taken:
        """Ask until there is an answer whose body could be taken too."""
        target = url if _ABSOLUTE.match(url) else f"{self._base_url}/{url.lstrip('/')}"
        renewed = False
        attempt = 1
        while True:
            try:
                with self._once(method, target, expected, parts) as response:
                    return take(response)
            except CredentialsError:
                if renewed or not self._renew():
                    raise
                renewed = True
            except RateLimitedError as error:
                wait_s = error.retry_after_s
                if attempt >= self._pacing.attempts or (wait_s or 0) > _LONGEST_RETRY_AFTER_S:
                    raise
                self._pacing.pause(wait_s if wait_s is not None else _backoff(attempt))
            except TransientError:
                if attempt >= self._pacing.attempts:
                    raise
                self._pacing.pause(_backoff(attempt))
            attempt += 1

    def _once(
        self, method: str, url: str, expected: frozenset[int], parts: Mapping[str, Any]
    ) -> requests.Response:
        self._pacing.admit()
        try:
            response = self._session.request(method, url, **self._options, **parts)
        # The errors of `requests` quote the whole address, so they are not chained.
        except InvalidIPAddress:
            raise RejectedError(
                f"{host_of(url)} lies in a private network, or leads there. The operator can open it "
                "with GROUNDWORK_PRIVATE_HOSTS."
            ) from None
        except (ValueError, requests.exceptions.InvalidURL) as error:
            raise _unusable(url, error) from None
        except requests.TooManyRedirects:
            raise RejectedError(f"{host_of(url)} redirects in a circle.") from None
        except requests.RequestException as error:
            raise TransientError(
                f"{host_of(url)} cannot be reached ({type(error).__name__})."
            ) from None
        if response.status_code < 400 or response.status_code in expected:
            return response
        with response:
            raise error_of(response)

    def _renew(self) -> bool:
        """Get fresh credentials where the authentication has a `renew`; False when there are none to get."""
        renew = getattr(self._auth, "renew", None)
        return bool(renew and renew())


def _backoff(attempt: int) -> float:
    """Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/."""
    return random.uniform(0, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt))  # noqa: S311


def _unusable(url: str, error: Exception) -> RejectedError:
    """`InvalidURL` is a ValueError too, as `MissingSchema` and answers that cannot be decoded are."""
    if isinstance(error, requests.RequestException):
        return RejectedError(f"{host_of(url)} has no usable address, or redirects to one.")
    return RejectedError("The address cannot be read.")
