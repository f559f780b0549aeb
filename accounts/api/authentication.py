"""Who calls: a program with an API key, or a person with a session. Both become an `Actor` in `request.auth`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.access import Actor, actor_for_key
from accounts.request import find_actor
from accounts.services.api_keys import find_valid_key

_SCHEME = "bearer"


class ApiKeyAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer gw_…`. A key is never read from the address or the body."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Actor] | None:
        """The actor of the key; None when the header is absent or of another scheme."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != _SCHEME:
            return None
        key = find_valid_key(text.strip())
        if key is None:
            raise AuthenticationFailed("The API key is unknown, expired or revoked.")
        return AnonymousUser(), actor_for_key(key)

    def authenticate_header(self, request: Request) -> str:
        """Makes REST framework answer 401 rather than 403."""
        del request
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """A logged-in person acting in their current tenant. Unsafe methods need the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """The actor of the membership that the middleware has chosen."""
        found = super().authenticate(request)
        if found is None:
            return None
        actor = find_actor(request._request)  # noqa: SLF001 - the name REST framework documents
        if actor is None:
            raise PermissionDenied("You belong to no tenant yet.")
        return found[0], actor
