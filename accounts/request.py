"""What `TenantMiddleware` puts on a request, with types."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.access import Actor
from accounts.models import Membership
from config.errors import ForbiddenError

SESSION_TENANT = "tenant_id"
SESSION_INVITATION = "invitation_token"


def memberships_of_request(request: HttpRequest) -> list[Membership]:
    """Every membership of the person who is logged in, by name of the tenant."""
    found: list[Membership] = getattr(request, "memberships", [])
    return found


def find_membership(request: HttpRequest) -> Membership | None:
    """The membership the person acts in at present."""
    return getattr(request, "membership", None)


def find_actor(request: HttpRequest) -> Actor | None:
    """The actor the person is at present; None for strangers and people without a tenant."""
    return getattr(request, "actor", None)


def get_actor(request: HttpRequest) -> Actor:
    """The actor the person is. Raises `ForbiddenError` if there is none."""
    actor = find_actor(request)
    if actor is None:
        raise ForbiddenError("You belong to no tenant.")
    return actor
