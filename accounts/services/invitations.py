"""Inviting people by mail."""

from __future__ import annotations

import hashlib
import logging
import secrets
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse
from django.utils import timezone

from accounts.access import Action, Actor, actor_for_member
from accounts.models import Invitation, Membership, Role, User
from accounts.models.membership import invitation_expiry
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, ForbiddenError, NotFoundError, TransientError

logger = logging.getLogger(__name__)


def invite(*, actor: Actor, email: str, role: str, tenant_name: str) -> Invitation:
    """Send a link that makes its holder a member. Inviting an address again sends a fresh link."""
    actor.require(Action.ADMIN)
    if role == Role.OWNER and not actor.is_owner:
        raise ForbiddenError("Only an owner invites owners.")
    email = email.strip().lower()
    if Membership.objects.filter(user__email=email).exists():
        raise ConflictError(f"{email} is a member already.")
    token = secrets.token_urlsafe(32)
    invitation: Invitation
    invitation, _ = Invitation.objects.update_or_create(
        email=email,
        accepted_at=None,
        defaults={"role": role, "token_hash": _digest(token), "expires_at": invitation_expiry()},
    )
    record_event(
        actor, "member.invited", target=email, target_id=invitation.id, detail={"role": role}
    )
    link = settings.GROUNDWORK_URL + reverse("accept_invitation", args=[token])
    message = (
        f"{actor.label} invites you to {tenant_name} on Groundwork.\n\n"
        f"Open this link to join (it works for seven days):\n{link}\n"
    )
    # Before the commit: a mail that could not be sent must not leave an invitation that looks sent.
    try:
        send_mail(f"Join {tenant_name} on Groundwork", message, None, [email])
    except (SMTPException, OSError) as error:
        logger.warning("The mail to %s could not be sent: %s", email, error)
        raise TransientError(
            "The mail could not be sent, so nobody was invited. Check the mail settings and try again."
        ) from error
    return invitation


def withdraw_invitation(*, actor: Actor, invitation: Invitation) -> None:
    """Make the link useless."""
    actor.require(Action.ADMIN)
    email, row_id = invitation.email, invitation.id
    invitation.delete()
    record_event(actor, "member.invitation_withdrawn", target=email, target_id=row_id)


def find_invitation(token: str) -> Invitation:
    """The open invitation of a link. Raises `NotFoundError` for a used, expired or unknown one."""
    invitation = (
        Invitation.unscoped.filter(token_hash=_digest(token)).select_related("tenant").first()
    )
    if invitation is None or not invitation.is_open():
        raise NotFoundError("This invitation is not valid any more. Ask for a new one.")
    return invitation


def accept_invitation(*, invitation: Invitation, user: User) -> Membership:
    """Make the person a member. The link must have been sent to this person's address."""
    if user.email.lower() != invitation.email:
        raise ForbiddenError(f"This invitation is for {invitation.email}; you are {user.email}.")
    with tenant_scope(invitation.tenant_id):
        claimed = Invitation.objects.filter(id=invitation.id, accepted_at=None).update(
            accepted_at=timezone.now()
        )
        if not claimed:
            raise ConflictError("This invitation has been used.")
        membership: Membership
        membership, _ = Membership.objects.get_or_create(
            user=user, defaults={"role": invitation.role}
        )
        record_event(
            actor_for_member(membership),
            "member.joined",
            target=user.email,
            target_id=membership.id,
            detail={"role": membership.role},
        )
    if not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
    return membership


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
