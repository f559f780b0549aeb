"""What happened, who did it, and what was refused."""

from __future__ import annotations

from django.db import models

from accounts.tenancy import TenantModel


class AuditEvent(TenantModel):
    """One administrative change or one denied access. Never changed afterwards."""

    actor = models.CharField(max_length=300)
    action = models.CharField(max_length=100)
    target = models.CharField(max_length=300, blank=True)
    target_id = models.UUIDField(null=True, blank=True)
    denied = models.BooleanField(default=False)
    detail = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "-created_at"], name="audit_newest_first")]
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.target}"
