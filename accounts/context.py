"""What every template knows about the tenant."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from accounts.request import find_membership, memberships_of_request


def tenant_context(request: HttpRequest) -> dict[str, Any]:
    """`tenant`, `membership` and, for the switcher, `memberships`."""
    membership = find_membership(request)
    return {
        "membership": membership,
        "tenant": membership.tenant if membership else None,
        "memberships": memberships_of_request(request),
        "signup_open": settings.SIGNUP_OPEN,
    }


def tenant_badge(request: HttpRequest) -> list[str] | None:
    """The label beside the title in the admin: `[text, colour]`."""
    membership = find_membership(request)
    return [membership.tenant.name, "info"] if membership else None
