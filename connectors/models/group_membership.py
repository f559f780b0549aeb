"""Who is in which group of a source."""

from __future__ import annotations

from django.db import models

from accounts.tenancy import TenantForeignKey, TenantModel


class GroupMembership(TenantModel):
    """One member of one group. Both are principals; groups carry their connection's name space."""

    connection = TenantForeignKey("connectors.Connection", related_name="memberships")
    group = models.CharField(max_length=300)
    member = models.CharField(max_length=300)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connection", "group", "member"], name="one_membership_per_group"
            )
        ]
        indexes = [models.Index(fields=["tenant", "member"], name="groups_of_a_member")]

    def __str__(self) -> str:
        return f"{self.member} in {self.group}"
