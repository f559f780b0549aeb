"""Addresses that are told what happens in a tenant, and what they were told."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.tenancy import TenantForeignKey, TenantModel, new_id
from config.secrets import seal, unseal


class WebhookEvent(models.TextChoices):
    """What can be told. `ping` is sent on request only."""

    SYNC_SUCCEEDED = "sync.succeeded", "A sync succeeded"
    SYNC_PARTIAL = "sync.partial", "A sync succeeded partly"
    SYNC_FAILED = "sync.failed", "A sync failed"
    DOCUMENT_READY = "document.ready", "A document can be found"
    DOCUMENT_FAILED = "document.failed", "A document could not be indexed"
    PING = "ping", "A test"


class WebhookEndpoint(TenantModel):
    """One address. `failing_since` is the first failure after the last success; meanwhile it is tried now and
    then (`probed_at`). One that has failed for days is disabled, and `disabled_reason` says so."""

    url = models.CharField(max_length=2000, help_text="Where events are posted to; https.")
    description = models.CharField(max_length=200, blank=True, help_text="What listens there.")
    event_types = ArrayField(models.CharField(max_length=40, choices=WebhookEvent))
    enabled = models.BooleanField(default=True)
    sealed_secret = models.TextField(editable=False)
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    probed_at = models.DateTimeField(null=True, blank=True, editable=False)
    disabled_reason = models.TextField(blank=True, editable=False)
    created_by = models.CharField(max_length=300, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "webhook"
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="webhook_newest_first")
        ]

    def __str__(self) -> str:
        return self.description or self.url

    @property
    def secret(self) -> str:
        """What its messages are signed with. Raises `SealedError`."""
        return str(unseal(self.sealed_secret))

    @secret.setter
    def secret(self, value: str) -> None:
        self.sealed_secret = seal(value)


class WebhookDelivery(TenantModel):
    """One event for one address. `event_id` is the same for all addresses and all attempts, so that a receiver
    can tell what it has seen."""

    class Status(models.TextChoices):
        PENDING = "pending", "On its way"
        SUCCEEDED = "succeeded", "Delivered"
        FAILED = "failed", "Given up"

    endpoint = TenantForeignKey("accounts.WebhookEndpoint", related_name="deliveries")
    event_id = models.UUIDField(default=new_id)
    event_type = models.CharField(max_length=40, choices=WebhookEvent)
    payload = models.JSONField()
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    next_attempt_at = models.DateTimeField(null=True, blank=True, default=timezone.now)
    attempted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(
                fields=["tenant", "endpoint", "-created_at", "-id"], name="delivery_newest_first"
            ),
            models.Index(
                fields=["next_attempt_at"], condition=Q(status="pending"), name="delivery_due"
            ),
            models.Index(fields=["created_at"], name="delivery_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"
