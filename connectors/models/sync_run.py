"""One run over a source, and how it ended."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.tenancy import TenantForeignKey, TenantModel


class SyncRun(TenantModel):
    """A run works under a lease: only who holds it may commit, and it is up for grabs when its heartbeat
    stops. `cursor` is where it resumes."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Waiting for a worker"
        RUNNING = "running", "Running"
        SUCCEEDED = "succeeded", "Succeeded"
        PARTIAL = "partial", "Partly succeeded"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"
        SKIPPED = "skipped", "Skipped"

    class Kind(models.TextChoices):
        INCREMENTAL = "incremental", "Changes"
        FULL = "full", "Everything"
        RETRY = "retry", "Failed items"
        REPLAY = "replay", "From the capture"
        PUSH = "push", "Pushed records"

    UNFINISHED = (Status.QUEUED, Status.RUNNING)

    connection = TenantForeignKey("connectors.Connection", related_name="runs")
    kind = models.CharField(max_length=12, choices=Kind)
    trigger = models.CharField(max_length=300, help_text="schedule, webhook, or who started it.")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    inserted = models.IntegerField(default=0)
    updated = models.IntegerField(default=0)
    kept = models.IntegerField(default=0)
    deleted = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    held_deletions = models.IntegerField(
        default=0, help_text="Documents that are gone at the source and wait for a person's word."
    )
    warnings = ArrayField(models.TextField(), default=list, blank=True)
    error = models.TextField(blank=True)
    error_code = models.CharField(max_length=50, blank=True)
    cursor = models.JSONField(default=dict, blank=True)
    from_start = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether it began with nothing known of the source.",
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    lease = models.UUIDField(null=True)
    cancel_requested = models.BooleanField(default=False)
    not_before = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "connection"],
                condition=Q(status__in=["queued", "running"]),
                name="one_sync_at_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["tenant", "connection", "-created_at", "-id"], name="sync_run_newest_first"
            ),
            models.Index(
                fields=["heartbeat_at"],
                condition=Q(status__in=["queued", "running"]),
                name="sync_run_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}, {self.get_status_display()}"

    @property
    def is_unfinished(self) -> bool:
        """Whether work is still to be done."""
        return self.status in self.UNFINISHED
