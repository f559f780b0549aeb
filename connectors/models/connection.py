"""A tenant's configured instance of a connector, feeding one knowledge base."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.tenancy import TenantForeignKey, TenantModel
from config.secrets import seal, unseal
from knowledge.models.document import public_only


class Connection(TenantModel):
    """One source of one base. Credentials are sealed; `cursor` is the connector's position."""

    class Status(models.TextChoices):
        ACTIVE = "active", "Active"
        PAUSED = "paused", "Paused"
        NEEDS_AUTHORISATION = "needs_authorisation", "Needs authorisation"

    class Access(models.TextChoices):
        SOURCE = "source", "As the source says"
        FIXED = "fixed", "Those named below"

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="connections")
    connector = models.CharField(max_length=50, editable=False)
    name = models.CharField(max_length=200)
    config = models.JSONField(default=dict, blank=True)
    auth_method = models.CharField(max_length=30, default="none")
    sealed_credentials = models.TextField(blank=True, editable=False)
    access = models.CharField(
        max_length=10,
        choices=Access,
        default=Access.SOURCE,
        help_text="Who may read what comes from this source.",
    )
    principals = ArrayField(
        models.CharField(max_length=300),
        default=public_only,
        help_text="Who may read it where the source does not know, or is not asked: public, user:mail@example.com, group:name.",
    )
    status = models.CharField(max_length=20, choices=Status, default=Status.ACTIVE)
    status_reason = models.TextField(blank=True, editable=False)
    credential_failures = models.PositiveSmallIntegerField(default=0, editable=False)
    cursor = models.JSONField(default=dict, blank=True, editable=False)
    change_noticed = models.BooleanField(
        default=False,
        editable=False,
        help_text="The source has told of a change that an unfinished run may have missed.",
    )
    schedule = models.JSONField(
        default=dict,
        blank=True,
        help_text='When to look for changes: {"every_minutes": 60} or {"cron": "0 6 * * *", "time_zone": "Europe/Berlin"}.',
    )
    full_schedule = models.JSONField(
        default=dict,
        blank=True,
        help_text="When to compare everything, written the same way. Empty: when started by hand.",
    )
    deletion_guard_percent = models.PositiveSmallIntegerField(
        default=30,
        help_text="A run that would delete more than this share of the documents stops and asks.",
    )
    keeps_capture = models.BooleanField(
        default=False,
        help_text="Keep what the source sent, so that it can be indexed again without asking the source.",
    )
    created_by = models.CharField(max_length=300, blank=True, editable=False)
    last_synced_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "knowledge_base", "name"], name="one_connection_per_name"
            )
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="connection_newest_first")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def credentials(self) -> dict[str, Any]:
        """The open credentials. Raises `SealedError`."""
        return unseal(self.sealed_credentials) if self.sealed_credentials else {}

    @credentials.setter
    def credentials(self, value: dict[str, Any]) -> None:
        self.sealed_credentials = seal(value) if value else ""
