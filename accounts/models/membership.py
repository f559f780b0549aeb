"""Who belongs to a tenant, in which role, and who has been invited."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.tenancy import TenantModel

INVITATION_LIFETIME = timedelta(days=7)


class Role(models.TextChoices):
    """What a member may do; each role includes those below it."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


class Membership(TenantModel):
    """One person in one tenant."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="memberships",
    )
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_person")
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


def invitation_expiry() -> datetime:
    return timezone.now() + INVITATION_LIFETIME


class Invitation(TenantModel):
    """A mail address that may join; the link's token is stored hashed."""

    email = models.EmailField("mail address", help_text="The invitation link is sent here.")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    token_hash = models.CharField(max_length=64, editable=False, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(default=invitation_expiry)
    accepted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=models.Q(accepted_at=None),
                name="one_open_invitation_per_address",
            )
        ]

    def __str__(self) -> str:
        return self.email

    def is_open(self) -> bool:
        """Whether the link still works."""
        return self.accepted_at is None and self.expires_at > timezone.now()
