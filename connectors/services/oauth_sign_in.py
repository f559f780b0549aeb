"""Signing in at a source: the authorization code grant with PKCE (RFC 6749, 7636).

What a sign-in waits for lies in the person's session, under the state that the source sends back. A state
serves once, for ten minutes, for the connection it was made for.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, ForbiddenError, InvalidInputError
from connectors.access import access_connection
from connectors.base import OAuthEndpoints
from connectors.models import Connection
from connectors.services.oauth_client import (
    address_of,
    client_of,
    endpoints_of,
    plain_word,
    request_tokens,
)
from connectors.services.oauth_tokens import renewal_lock, store_tokens
from connectors.services.schedules import follow_schedules

_SESSION = "connector_sign_ins"
_LIFETIME_S = 600.0
_MOST_WAITING = 10  # sign-ins that one person has begun in several windows
_OWN_CLIENT = ("client_id", "client_secret")

Session = MutableMapping[str, Any]


class SignInRefusedError(InvalidInputError):
    """The sign-in has come to nothing, but its connection is known."""

    def __init__(self, message: str, connection_id: UUID) -> None:
        super().__init__(message)
        self.connection_id = connection_id


def redirect_uri() -> str:
    """The address to register with every OAuth client: the same for all connectors and tenants."""
    return f"{settings.GROUNDWORK_URL}{reverse('connectors_oauth_callback')}"


def begin_sign_in(*, actor: Actor, connection: Connection, session: Session) -> str:
    """Where to send the person. Raises `InvalidInputError` when the connection knows no sign-in,
    `CredentialsError` when it has no OAuth client."""
    actor.require(Action.WRITE)
    endpoints = _sign_in_of(connection)
    client_id, _ = client_of(connection, connection.credentials)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    waiting = sorted(_waiting(session).items(), key=lambda item: item[1]["at"])
    session[_SESSION] = {
        **dict(waiting[-_MOST_WAITING + 1 :]),
        state: {"connection": str(connection.id), "verifier": verifier, "at": time.time()},
    }
    question = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri(),
        "state": state,
        **endpoints.asked_scope,
        **(_challenge(verifier) if endpoints.pkce else {}),
        **endpoints.extra,
    }
    address = address_of(endpoints.authorize_url, connection.config)
    return f"{address}{'&' if '?' in address else '?'}{urlencode(question)}"


def finish_sign_in(*, actor: Actor, session: Session, answer: Mapping[str, str]) -> Connection:
    """Take what the source has sent the person back with. Raises `ForbiddenError` when it answers nothing that
    this session has asked, `NotFoundError` when the connection is not the actor's, and `SignInRefusedError`
    or another error that names the reason. Not to be called in a transaction."""
    begun = _claim(session, answer.get("state", ""))
    with tenant_scope(actor.tenant_id):
        connection = access_connection(actor, begun["connection"])
    if not answer.get("code"):
        raise SignInRefusedError(_reason(answer), connection.id)
    try:
        with renewal_lock(connection.id):
            tokens = _exchange(connection, answer["code"], begun["verifier"])
            store_tokens(connection, tokens)
    except CredentialsError as error:
        message = f"{error.message} Check the client's id, its secret and its redirect address."
        raise SignInRefusedError(message, connection.id) from error
    return _activate(actor, connection)


def _exchange(connection: Connection, code: str, verifier: str) -> dict[str, Any]:
    endpoints, before = _sign_in_of(connection), connection.credentials
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri()}
    if endpoints.pkce:
        form["code_verifier"] = verifier
    own = {name: before[name] for name in _OWN_CLIENT if before.get(name)}
    return {**own, **request_tokens(connection, before, form)}


def _activate(actor: Actor, connection: Connection) -> Connection:
    with tenant_scope(actor.tenant_id):
        fresh: Connection = Connection.objects.select_for_update().get(id=connection.id)
        if fresh.status == Connection.Status.NEEDS_AUTHORISATION:
            fresh.status = Connection.Status.ACTIVE
        fresh.status_reason, fresh.credential_failures = "", 0
        fresh.save(update_fields=["status", "status_reason", "credential_failures", "updated_at"])
        follow_schedules(fresh)
        record_event(actor, "connection.authorised", target=str(fresh), target_id=fresh.id)
    return fresh


def _claim(session: Session, state: str) -> dict[str, Any]:
    """What waits under a state, which is then gone."""
    waiting = _waiting(session)
    begun = waiting.pop(state, None)
    session[_SESSION] = waiting
    if begun is None:
        raise ForbiddenError(
            "This sign-in was not begun in this browser, or has been answered already. Begin again."
        )
    if time.time() - begun["at"] > _LIFETIME_S:
        raise ForbiddenError("The sign-in has taken more than ten minutes. Begin again.")
    return begun


def _waiting(session: Session) -> dict[str, dict[str, Any]]:
    return dict(session.get(_SESSION, {}))


def _sign_in_of(connection: Connection) -> OAuthEndpoints:
    endpoints = endpoints_of(connection)
    if endpoints is None or endpoints.client_credentials:
        raise InvalidInputError("This connection needs no sign-in.")
    return endpoints


def _challenge(verifier: str) -> dict[str, str]:
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return {"code_challenge": challenge, "code_challenge_method": "S256"}


def _reason(answer: Mapping[str, str]) -> str:
    code = plain_word(answer.get("error")) or "no code"
    description = plain_word(answer.get("error_description"), 300)
    return f"The source did not give access: {code}. {description}".strip()
