"""What was searched, how long each step took, what people thought of it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.tenancy import TenantForeignKey, TenantModel


class SearchQuery(TenantModel):
    """One search with its timings and the ids it returned, in order."""

    actor = models.CharField(max_length=300)
    query = models.TextField()
    mode = models.CharField(max_length=10)
    strategy = models.CharField(max_length=10)
    request = models.JSONField(default=dict)
    knowledge_base_ids = ArrayField(models.UUIDField(), default=list)
    chunk_ids = ArrayField(models.UUIDField(), default=list)
    result_count = models.IntegerField(default=0)
    timings_ms = models.JSONField(default=dict)
    total_ms = models.FloatField(default=0.0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "search"
        verbose_name_plural = "search history"
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="search_newest_first")
        ]
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.query[:80]


class SearchFeedback(TenantModel):
    """A thumb up or down for a search or one of its results."""

    class Rating(models.TextChoices):
        UP = "up"
        DOWN = "down"

    search = TenantForeignKey("search.SearchQuery", related_name="feedback")
    rating = models.CharField(max_length=4, choices=Rating)
    chunk_id = models.UUIDField(null=True, blank=True)
    comment = models.TextField(blank=True)
    actor = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.rating} {self.comment[:60]}"
