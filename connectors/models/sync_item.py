"""One thing at a source, as the last runs saw it: the ledger of a connection."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from accounts.tenancy import TenantForeignKey, TenantModel


class SyncItem(TenantModel):
    """What is known of one external id. `seen_run` is the last run that met it, which is what a sweep
    compares; `version` and `facts_hash` say whether anything has changed."""

    class Status(models.TextChoices):
        STORED = "stored", "Stored"
        FAILED = "failed", "Failed"
        SKIPPED = "skipped", "Holds no text"
        GONE = "gone", "Gone at the source; waits for a person's word"

    class Stage(models.TextChoices):
        LIST = "list", "Reading it from the source"
        FETCH = "fetch", "Downloading it"
        STORE = "store", "Storing it"

    connection = TenantForeignKey("connectors.Connection", related_name="items")
    external_id = models.CharField(max_length=500)
    title = models.CharField(max_length=500, blank=True)
    scope = models.CharField(max_length=500, blank=True)
    document_id = models.UUIDField(null=True, blank=True)
    version = models.CharField(max_length=500, blank=True)
    facts_hash = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.STORED)
    stage = models.CharField(max_length=6, choices=Stage, blank=True)
    error = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_retry_at = models.DateTimeField(null=True, blank=True)
    in_complete_scope = models.BooleanField(
        default=False, help_text="Whether its scope has been listed completely before."
    )
    seen_run = models.UUIDField(null=True)
    seen_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connection", "external_id"], name="one_item_per_external_id"
            )
        ]
        indexes = [
            models.Index(
                fields=["tenant", "connection", "status", "next_retry_at"],
                condition=~Q(status="stored"),
                name="sync_item_unfinished",
            )
        ]

    def __str__(self) -> str:
        return self.title or self.external_id
