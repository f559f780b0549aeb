"""A cluster: a reusable synthesised answer with its evidence."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from accounts.tenancy import TenantForeignKey, TenantModel


class Cluster(TenantModel):
    """An answer worth keeping, found again by the queries that led to it."""

    class Lifecycle(models.TextChoices):
        EMERGING = "emerging"
        STABLE = "stable"
        STALE = "stale"

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="clusters")
    name = models.CharField(max_length=300)
    content = models.TextField()
    query_history = ArrayField(models.TextField(), default=list, blank=True)
    query_embedding = HalfVectorField(null=True, blank=True)
    confidence = models.FloatField(default=0.0)
    hotness = models.FloatField(default=0.0)
    lifecycle = models.CharField(max_length=10, choices=Lifecycle, default=Lifecycle.EMERGING)
    related_cluster_ids = ArrayField(models.UUIDField(), default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        pass

    def __str__(self) -> str:
        return self.name


class ClusterEvidence(TenantModel):
    """One quoted chunk under a cluster; gone with its chunk."""

    cluster = TenantForeignKey("knowledge.Cluster", related_name="evidence")
    document = TenantForeignKey("knowledge.Document", related_name="+")
    chunk = TenantForeignKey("knowledge.Chunk", related_name="+")
    quote = models.TextField()

    class Meta(TenantModel.Meta):
        pass

    def __str__(self) -> str:
        return self.quote[:80]
