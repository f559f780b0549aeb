"""A document: one file or text in one knowledge base."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.db import models
from django.db.models import Case, F, Q, When

from accounts.access import PUBLIC
from accounts.tenancy import TenantForeignKey, TenantModel


def public_only() -> list[str]:
    """Who may read a document unless said otherwise: everyone who may use its base."""
    return [PUBLIC]


def _source_time_or_ours(name: str) -> Case:
    return Case(When(**{f"source_{name}": None}, then=F(name)), default=F(f"source_{name}"))


class Document(TenantModel):
    """One document and the state of its ingestion.

    A new version is a second row that `replaces` the first one. It is hidden until it is indexed;
    then its content moves into the first row, whose id never changes.
    """

    class Status(models.TextChoices):
        PENDING = "pending", "Waiting"
        PROCESSING = "processing", "Processing"
        READY = "ready", "Ready"
        FAILED = "failed", "Failed"

    class Stage(models.TextChoices):
        QUEUED = "", "Waiting for a worker"
        EXTRACTING = "extracting", "Reading the file"
        EMBEDDING = "embedding", "Computing vectors; already found by its words"
        DONE = "done", "Done"

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="documents")
    replaces = TenantForeignKey(
        "self", null=True, blank=True, editable=False, related_name="replacements"
    )
    title = models.CharField(max_length=500, blank=True)
    filename = models.CharField(max_length=500, blank=True)
    content_type = models.CharField(max_length=200, blank=True)
    language = models.CharField(max_length=8, blank=True)
    source = models.CharField(max_length=50, default="upload")
    source_uri = models.CharField(max_length=2000, blank=True)
    source_id = models.UUIDField(
        null=True,
        editable=False,
        help_text="The connection it came from; external ids are unique in it.",
    )
    external_id = models.CharField(max_length=500, blank=True)
    author = models.CharField(max_length=300, blank=True)
    breadcrumbs = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    principals = ArrayField(
        models.CharField(max_length=300),
        default=public_only,
        help_text="Who may find it: public, user:mail@example.com, group:name.",
    )
    boost = models.FloatField(
        default=1.0, help_text="Factor for the scores of its passages; 1 changes nothing."
    )
    original = models.FileField(max_length=500, editable=False)
    size = models.BigIntegerField(default=0, editable=False)
    content_hash = models.CharField(max_length=64, editable=False)
    extracted_text = models.TextField(blank=True, editable=False)

    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    stage = models.CharField(max_length=12, choices=Stage, default=Stage.QUEUED, blank=True)
    error_code = models.CharField(max_length=50, blank=True)
    error = models.TextField(blank=True)
    warnings = ArrayField(models.TextField(), default=list, blank=True)
    coverage_unit = models.CharField(max_length=30, blank=True)
    coverage_found = models.IntegerField(default=0)
    coverage_indexed = models.IntegerField(default=0)
    chunk_count = models.IntegerField(default=0)
    embedded_count = models.IntegerField(default=0)
    attempts = models.IntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    embedding_started_at = models.DateTimeField(null=True, blank=True)

    source_created_at = models.DateTimeField(null=True, blank=True)
    source_updated_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    indexed_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(
        null=True, editable=False, help_text="When a sync last met it at its source."
    )

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "knowledge_base", "external_id", "source_id"],
                condition=~Q(external_id="") & Q(replaces=None),
                nulls_distinct=False,
                name="one_document_per_external_id",
            ),
            models.UniqueConstraint(
                fields=["tenant", "knowledge_base", "content_hash"],
                condition=Q(external_id="", replaces=None),
                name="one_document_per_content",
            ),
            models.UniqueConstraint(
                fields=["tenant", "replaces"],
                condition=Q(replaces__isnull=False),
                name="one_new_version_at_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "knowledge_base", "-created_at", "-id"],
                name="document_newest_first",
            ),
            models.Index(
                fields=["heartbeat_at"],
                condition=Q(status__in=["pending", "processing"]),
                name="document_unfinished",
            ),
            models.Index(
                fields=["tenant", "source_id"],
                condition=Q(source_id__isnull=False),
                name="document_by_source_id",
            ),
            # What filters ask for (search/retrieval/fields.py; the tests look at the plans).
            *(
                models.Index(fields=["tenant", "knowledge_base", name], name=f"document_by_{name}")
                for name in ("source", "author", "content_type")
            ),
            # A hash, for an address may be longer than what fits into an index otherwise.
            HashIndex(
                fields=["source_uri"], condition=~Q(source_uri=""), name="document_by_source_uri"
            ),
            *(
                models.Index(
                    "tenant",
                    "knowledge_base",
                    _source_time_or_ours(name),
                    name=f"document_by_{name}",
                )
                for name in ("created_at", "updated_at")
            ),
            GinIndex(
                fields=["metadata"], opclasses=["jsonb_path_ops"], name="document_by_metadata"
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.filename or str(self.id)

    @property
    def is_unfinished(self) -> bool:
        """Whether work is still to be done."""
        return self.status in {self.Status.PENDING, self.Status.PROCESSING}
