"""How people enter: who may sign up, and where they land after their first login."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext

from accounts.models import Invitation, User
from accounts.request import SESSION_INVITATION, SESSION_TENANT
from accounts.services.invitations import accept_invitation, find_invitation
from accounts.services.tenants import found_tenant, memberships_of
from config.errors import NotFoundError


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Sign-up is open to all or by invitation, as the operator decides."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Open for all, or for the holder of an invitation link."""
        return settings.SIGNUP_OPEN or find_session_invitation(request) is not None

    def clean_email(self, email: str) -> str:
        """Where sign-up is closed, an invitation lets in the invited address and no other."""
        if not settings.SIGNUP_OPEN and self.request.resolver_match.url_name == "account_signup":
            invitation = find_session_invitation(self.request)
            if invitation is None or invitation.email != email.lower():
                raise ValidationError(gettext("Use the address that the invitation was sent to."))
        return email

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        """Whoever holds the link has read the mail, so the address needs no second proof."""
        invitation = find_session_invitation(request)
        if invitation is not None and invitation.email == email.lower():
            return True
        return bool(super().is_email_verified(request, email))

    def login(self, request: HttpRequest, user: Any) -> None:
        """Log in; the first time, join the inviting tenant or found one."""
        is_first = user.last_login is None
        super().login(request, user)
        if is_first:
            _settle(request, user)


def find_session_invitation(request: HttpRequest) -> Invitation | None:
    """The open invitation whose link this browser has followed."""
    token = request.session.get(SESSION_INVITATION)
    if not token:
        return None
    try:
        return find_invitation(token)
    except NotFoundError:
        return None


def _settle(request: HttpRequest, user: User) -> None:
    invitation = find_session_invitation(request)
    if invitation is not None and invitation.email == user.email.lower():
        membership = accept_invitation(invitation=invitation, user=user)
        request.session.pop(SESSION_INVITATION, None)
        request.session[SESSION_TENANT] = str(membership.tenant_id)
    elif settings.SIGNUP_OPEN and not memberships_of(user):
        found_tenant(name=user.get_full_name() or user.email.partition("@")[0], owner=user)
