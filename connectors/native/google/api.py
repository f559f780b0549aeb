"""Asking Google: signing in, and rate limits that come as refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, BinaryIO

import requests

from config.errors import RateLimitedError, RejectedError
from config.http import HttpClient
from config.http_answers import error_of
from connectors.base import AuthMethod, Context, OAuthEndpoints, oauth

_ATTEMPTS = 4
_FIRST_WAIT_S = 2.0
_GONE = frozenset({404, 410})
# https://developers.google.com/workspace/drive/api/guides/handle-errors
_LIMITS = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "quotaExceeded"}
)


def google_sign_in(*scopes: str) -> AuthMethod:
    """A sign-in that lasts: Google gives a refresh token when it is asked to, and asks for consent."""
    endpoints = OAuthEndpoints(
        "https://accounts.google.com/o/oauth2/v2/auth",
        "https://oauth2.googleapis.com/token",
        scopes=tuple(f"https://www.googleapis.com/auth/{scope}" for scope in scopes),
        extra={"access_type": "offline", "prompt": "consent"},
        basic_client=False,
    )
    return oauth(endpoints, "Sign in with Google")


class GoogleApi:
    """One of Google's APIs."""

    def __init__(self, context: Context, root: str) -> None:
        self._client: HttpClient = context.client(root)
        self._pause = context.pause

    def get(self, path: str, **params: Any) -> Any:
        """An answer. A refusal that is a rate limit is waited for, then raised as `RateLimitedError`."""
        response = self._ask(path, params, frozenset())
        return response.json()

    def find(self, path: str, **params: Any) -> Any:
        """An answer, or None where there is nothing."""
        response = self._ask(path, params, _GONE)
        return None if response.status_code in _GONE else response.json()

    @contextmanager
    def download(self, path: str, params: Mapping[str, Any], max_bytes: int) -> Iterator[BinaryIO]:
        """The content of a file. Downloads are never parsed, so a refusal is asked about once more."""
        try:
            with self._client.download(path, params=params, max_bytes=max_bytes) as file:
                yield file
        except RejectedError as error:
            if error.status == 403:
                self._ask(path.removesuffix("/export"), {"fields": "id"}, frozenset({403, 404}))
            raise

    def _ask(
        self, path: str, params: Mapping[str, Any], expected: frozenset[int]
    ) -> requests.Response:
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._pause(_FIRST_WAIT_S * 2**attempt)
            response = self._client.request("GET", path, params=params, expected=expected | {403})
            if response.status_code != 403:
                return response
            if not _is_limit(response):
                raise error_of(response)
        raise RateLimitedError("Google asks to slow down (403).")


def moment(text: str | None) -> datetime | None:
    """A time as Google writes it: RFC 3339, or milliseconds since 1970."""
    if not text:
        return None
    if text.isdigit():
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    return datetime.fromisoformat(text)


def _is_limit(response: requests.Response) -> bool:
    try:
        reasons = {one.get("reason") for one in response.json()["error"]["errors"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return bool(reasons & _LIMITS)
