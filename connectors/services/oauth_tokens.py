"""Tokens that are renewed before they run out, by one worker at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from uuid import UUID

import redis
import requests
from django.conf import settings
from requests.auth import AuthBase

from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, TransientError
from connectors.base import OAuthEndpoints
from connectors.models import Connection
from connectors.services.oauth_client import endpoints_of, request_tokens

_AHEAD_S = 120.0  # renewed so long before the end
_LOCK_S = 120.0  # a renewal takes no longer, or its worker is gone


class OAuthBearer(AuthBase):
    """Sends the access token of a connection; fetches a new one shortly before it ends, or when refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tokens: dict[str, Any] = connection.credentials
        self._refusal: CredentialsError | None = None

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by `requests` for each request."""
        if self._is_ending():
            self.renew()
        request.headers["Authorization"] = f"Bearer {self._tokens.get('access_token', '')}"
        return request

    def renew(self) -> bool:
        """New tokens, from the source or from the worker that was faster. False when there are none. Not to be
        called in a transaction: if that is rolled back, a refresh token that is good for one use is lost."""
        if self._refusal is not None:
            raise self._refusal
        refused = self._tokens.get("access_token")
        with renewal_lock(self._connection.id):
            self._tokens = self._stored()
            if self._tokens.get("access_token") != refused and not self._is_ending():
                return True
            try:
                return self._fetch()
            except CredentialsError as error:
                self._refusal = error  # the source need not be asked twice
                raise

    def _fetch(self) -> bool:
        endpoints = endpoints_of(self._connection)
        form = None if endpoints is None else _grant(endpoints, self._tokens)
        if form is None:
            return False
        answer = request_tokens(self._connection, self._tokens, form)
        self._tokens = {**self._tokens, **answer}
        store_tokens(self._connection, self._tokens)
        return True

    def _stored(self) -> dict[str, Any]:
        with tenant_scope(self._connection.tenant_id):
            fresh = Connection.objects.only("sealed_credentials", "tenant_id").get(
                id=self._connection.id
            )
        tokens: dict[str, Any] = fresh.credentials
        return tokens

    def _is_ending(self) -> bool:
        expires_at = self._tokens.get("expires_at")
        if not self._tokens.get("access_token"):
            return True
        return expires_at is not None and time.time() > expires_at - _AHEAD_S


def store_tokens(connection: Connection, tokens: dict[str, Any]) -> None:
    """Write tokens at once: a refresh token may be good for one use only."""
    connection.credentials = tokens
    with tenant_scope(connection.tenant_id):
        Connection.objects.filter(id=connection.id).update(
            sealed_credentials=connection.sealed_credentials
        )


@contextmanager
def renewal_lock(connection_id: UUID) -> Iterator[None]:
    """One process at a time gets tokens for a connection. Raises `TransientError` when another one takes
    very long."""
    lock = _valkey().lock(f"oauth:{connection_id}", timeout=_LOCK_S, blocking_timeout=_LOCK_S)
    if not lock.acquire():
        raise TransientError("Another worker has been renewing the access for too long.")
    try:
        yield
    finally:
        # Else it has run out, and the tokens are stored all the same.
        with suppress(redis.exceptions.LockNotOwnedError):
            lock.release()


def _grant(endpoints: OAuthEndpoints, tokens: dict[str, Any]) -> dict[str, str] | None:
    if endpoints.client_credentials:
        return {"grant_type": "client_credentials", **endpoints.asked_scope}
    if tokens.get("refresh_token"):
        return {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    return None


@cache
def _valkey() -> redis.Redis:
    client: redis.Redis = redis.Redis.from_url(settings.REDIS_URL)
    return client
