"""Which OAuth client a connection uses, where it asks for tokens, and what the answer means (RFC 6749)."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

from django.conf import settings
from requests.auth import AuthBase, HTTPBasicAuth

from config.errors import CredentialsError, FieldError, InvalidInputError
from config.http import HttpClient, Pacing
from config.http_answers import parse_json
from connectors.base import OAuthEndpoints
from connectors.models import Connection
from connectors.registry import connector_class

_REFUSED = frozenset({400, 401, 403})
# Two attempts that each may take this long end well before a lock of `oauth_tokens` does.
_PACING = Pacing(attempts=2, read_timeout_s=20.0)
_FIELD = re.compile(r"\{(\w+)\}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?")
_LABEL = re.compile(r"[A-Za-z0-9-]+")
# Nothing to fill in before the path, or one label in front of a fixed domain.
_OF_THE_VENDOR = re.compile(r"https?://([^/{}]+|\{\w+\}(\.[a-z0-9-]+){2,})(/|$)")


def endpoints_of(connection: Connection) -> OAuthEndpoints | None:
    """Where a connection's tokens come from; None when they come from nowhere."""
    return connector_class(connection.connector).spec.method(connection.auth_method).oauth


def client_of(connection: Connection, tokens: dict[str, Any]) -> tuple[str, str]:
    """The OAuth client: the tenant's own, or the installation's (GROUNDWORK_OAUTH_CLIENTS), which is shown to
    no host that a tenant may choose. Raises `CredentialsError` when there is none."""
    if tokens.get("client_id"):
        return str(tokens["client_id"]), str(tokens.get("client_secret", ""))
    clients: dict[str, tuple[str, str]] = settings.GROUNDWORK_OAUTH_CLIENTS
    endpoints = endpoints_of(connection)
    is_vendors = endpoints is not None and _OF_THE_VENDOR.match(endpoints.token_url) is not None
    if not is_vendors or connection.connector not in clients:
        raise CredentialsError(
            "No OAuth client is configured. Enter your own client id and secret"
            + (", or ask the operator." if is_vendors else ".")
        )
    return clients[connection.connector]


def address_of(template: str, config: dict[str, Any]) -> str:
    """An endpoint with its configuration fields filled in. A field that is part of a host name stays that: it
    cannot lead to another host. Raises `InvalidInputError` naming the field."""

    def fill(found: re.Match[str]) -> str:
        name, value = found[1], str(config.get(found[1], ""))
        if found.start() == 0:
            return value.rstrip("/")  # a whole address, which the connector's configuration checks
        rest = template[found.end() :]
        if not (_LABEL if rest.startswith(".") else _HOST).fullmatch(value):
            fault = FieldError(f"config.{name}", "Letters, digits, hyphens.")
            raise InvalidInputError("The address of the source cannot be used.", [fault])
        return value

    return _FIELD.sub(fill, template)


def request_tokens(
    connection: Connection, tokens: dict[str, Any], form: dict[str, str]
) -> dict[str, Any]:
    """Ask the token endpoint. Returns the tokens of the answer as they are stored. Raises `CredentialsError`
    when the source refuses, saying why in its own word."""
    endpoints = endpoints_of(connection)
    assert endpoints is not None  # noqa: S101 - callers have looked
    client_id, secret = client_of(connection, tokens)
    auth: AuthBase | None = None
    if endpoints.basic_client and secret:
        auth = HTTPBasicAuth(client_id.encode(), secret.encode())
    else:
        form = {**form, "client_id": client_id, **({"client_secret": secret} if secret else {})}
    answer = HttpClient(auth=auth, pacing=_PACING).request(
        "POST",
        address_of(endpoints.token_url, connection.config),
        data=form,
        headers={"Accept": "application/json"},
        expected=_REFUSED,
    )
    found = parse_json(answer) if answer.content.strip() else {}
    if not isinstance(found, dict) or not found.get("access_token"):
        reason = plain_word(found.get("error") if isinstance(found, dict) else "")
        raise CredentialsError(f"The source gives no access{f' ({reason})' if reason else ''}.")
    return _stored(found)


def plain_word(text: Any, length: int = 60) -> str:
    """What a source says, in so far as it is harmless to show."""
    return " ".join(re.sub(r"[^\w .,:;()/-]+", " ", str(text or "")).split())[:length]


def _stored(answer: dict[str, Any]) -> dict[str, Any]:
    tokens: dict[str, Any] = {"access_token": str(answer["access_token"]), "expires_at": None}
    if answer.get("refresh_token"):
        tokens["refresh_token"] = str(answer["refresh_token"])
    # Where the source does not say, the token serves until it is refused.
    with suppress(KeyError, TypeError, ValueError):
        tokens["expires_at"] = time.time() + float(answer["expires_in"])
    return tokens
