"""Tokens that are renewed before they run out, by one worker at a time."""

from __future__ import annotations

import logging
import time
from typing import Any

import requests
from django.conf import settings
from django.core.cache import cache
from requests.auth import AuthBase

from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, RejectedError
from config.http import HttpClient
from connectors.base import OAuthEndpoints
from connectors.models import Connection
from connectors.registry import connector_class

logger = logging.getLogger(__name__)

_AHEAD_S = 120.0  # renewed so long before the end
_LOCK_S = 60.0  # a renewal takes no longer, or its worker is gone


class OAuthBearer(AuthBase):
    """Sends the access token of a connection; fetches a new one shortly before it ends, or when refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tokens: dict[str, Any] = connection.credentials

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by `requests` for each request."""
        if self._is_ending():
            self.renew()
        request.headers["Authorization"] = f"Bearer {self._tokens.get('access_token', '')}"
        return request

    def renew(self) -> bool:
        """New tokens, from the source or from the worker that was faster. False when there are none."""
        refused = self._tokens.get("access_token")
        with cache.lock(f"oauth:{self._connection.id}", timeout=_LOCK_S):  # type: ignore[attr-defined]
            self._tokens = self._stored()
            if self._tokens.get("access_token") != refused and not self._is_ending():
                return True
            return self._fetch()

    def _fetch(self) -> bool:
        endpoints = endpoints_of(self._connection)
        if endpoints is None:
            return False
        form = _grant(endpoints, self._tokens)
        if form is None:
            return False
        answer = token_request(self._connection, endpoints, self._tokens, form)
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


def endpoints_of(connection: Connection) -> OAuthEndpoints | None:
    """Where a connection's tokens come from."""
    return connector_class(connection.connector).spec.method(connection.auth_method).oauth


def store_tokens(connection: Connection, tokens: dict[str, Any]) -> None:
    """Write tokens at once: a refresh token may be good for one use only."""
    connection.credentials = tokens
    with tenant_scope(connection.tenant_id):
        Connection.objects.filter(id=connection.id).update(
            sealed_credentials=connection.sealed_credentials
        )


def token_request(
    connection: Connection, endpoints: OAuthEndpoints, tokens: dict[str, Any], form: dict[str, str]
) -> dict[str, Any]:
    """Ask the token endpoint (RFC 6749). Returns the tokens of the answer as they are stored. Raises
    `CredentialsError` when the source refuses."""
    client_id, secret = client_of(connection, tokens)
    if endpoints.basic_client and secret:
        auth: AuthBase | None = requests.auth.HTTPBasicAuth(client_id, secret)
    else:
        auth = None
        form = {**form, "client_id": client_id, **({"client_secret": secret} if secret else {})}
    url = endpoints.token_url.format_map(connection.config)
    try:
        answer = HttpClient(auth=auth).request(
            "POST", url, data=form, headers={"Accept": "application/json"}
        )
        found = answer.json()
    except (RejectedError, ValueError) as error:
        raise CredentialsError("The source does not renew the access. Sign in again.") from error
    if not isinstance(found, dict) or not found.get("access_token"):
        raise CredentialsError("The source gave no access. Sign in again.")
    return stored_tokens(found)


def stored_tokens(answer: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a token answer."""
    tokens: dict[str, Any] = {"access_token": answer["access_token"], "expires_at": None}
    if answer.get("refresh_token"):
        tokens["refresh_token"] = answer["refresh_token"]
    if answer.get("expires_in"):
        tokens["expires_at"] = time.time() + float(answer["expires_in"])
    return tokens


def client_of(connection: Connection, tokens: dict[str, Any]) -> tuple[str, str]:
    """The OAuth client: the tenant's own, or the installation's (GROUNDWORK_OAUTH_CLIENTS)."""
    if tokens.get("client_id"):
        return str(tokens["client_id"]), str(tokens.get("client_secret", ""))
    clients: dict[str, tuple[str, str]] = settings.GROUNDWORK_OAUTH_CLIENTS
    if connection.connector not in clients:
        raise CredentialsError(
            "No OAuth client is configured. Enter your own client id and secret, or ask the operator."
        )
    return clients[connection.connector]


def _grant(endpoints: OAuthEndpoints, tokens: dict[str, Any]) -> dict[str, str] | None:
    if endpoints.client_credentials:
        scope = endpoints.scope_separator.join(endpoints.scopes)
        return {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    if tokens.get("refresh_token"):
        return {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    return None
