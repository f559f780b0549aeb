"""What was answered to a write that carried an Idempotency-Key."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from accounts.tenancy import TenantModel


class IdempotencyRecord(TenantModel):
    """One key of one actor. Without `completed_at` the request is still being worked on."""

    actor = models.CharField(max_length=60)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    claimed_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "actor", "key"], name="one_answer_per_key")
        ]
        indexes = [models.Index(fields=["tenant", "claimed_at"], name="idempotency_oldest")]

    def __str__(self) -> str:
        return self.key
