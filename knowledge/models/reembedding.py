"""A change of a base's embedding model: the work, its progress and how it ended."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.tenancy import TenantForeignKey, TenantModel


class ReEmbedding(TenantModel):
    """Fills the vector field that search does not read, then makes it the one that search reads.

    Workers share it out in lanes: `lanes` names those that may work, `claims` the range of chunk ids
    each of them is at, `cursor` the last chunk id that was given out.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", "Waiting for a worker"
        RUNNING = "running", "Computing vectors; search uses the old ones"
        READY = "ready", "Vectors complete; preparing to switch"
        SWITCHED = "switched", "Done; search uses the new vectors"
        FAILED = "failed", "Failed; search uses the old vectors"
        CANCELLED = "cancelled", "Cancelled; search uses the old vectors"
        ROLLED_BACK = "rolled_back", "Rolled back; search uses the old vectors"

    UNFINISHED = (Status.QUEUED, Status.RUNNING, Status.READY)

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="reembeddings")
    from_model = models.CharField(max_length=200)
    to_model = models.CharField(max_length=200)
    field = models.CharField(max_length=20)
    status = models.CharField(max_length=12, choices=Status, default=Status.QUEUED)
    total = models.IntegerField(default=0)
    done = models.IntegerField(default=0)
    reused = models.IntegerField(default=0)
    shortened = models.IntegerField(default=0)
    error = models.TextField(blank=True)
    error_code = models.CharField(max_length=50, blank=True)
    attempts = models.IntegerField(default=0)
    is_emptied = models.BooleanField(default=False)
    lanes = models.JSONField(default=list)
    claims = models.JSONField(default=dict)
    cursor = models.UUIDField(null=True)
    started_by = models.CharField(max_length=300)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "knowledge_base"],
                condition=Q(status__in=["queued", "running", "ready"]),
                name="one_reembedding_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.from_model} → {self.to_model}"

    @property
    def is_unfinished(self) -> bool:
        """Whether work is still to be done."""
        return self.status in self.UNFINISHED
