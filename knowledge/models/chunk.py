"""A chunk: the passage that is searched and cited."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from accounts.tenancy import TenantForeignKey, TenantModel
from knowledge.lexical.weights import DIMENSIONS
from knowledge.models.document import public_only


class Chunk(TenantModel):
    """A passage with its place in the document, its lexical columns and its vector.

    `start` and `end` are character offsets into the document's extracted text. `live` is false while
    a new version is being indexed; search sees live and enabled chunks only. The base says which of
    the two vector fields search reads (`KnowledgeBase.embedding_field`); the other one is filled while the
    base changes its embedding model. `fingerprint` is for near-duplicates
    (`knowledge.lexical.fingerprint`).
    """

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="chunks")
    document = TenantForeignKey("knowledge.Document", related_name="chunks")
    ordinal = models.IntegerField()
    content = models.TextField()
    heading_path = ArrayField(models.TextField(), default=list, blank=True)
    page = models.IntegerField(null=True, blank=True)
    sheet = models.CharField(max_length=300, null=True, blank=True)
    row = models.IntegerField(null=True, blank=True)
    line = models.IntegerField(null=True, blank=True)
    start = models.IntegerField()
    end = models.IntegerField()
    token_count = models.IntegerField(default=0)
    language = models.CharField(max_length=8, blank=True)
    lexemes = SearchVectorField(null=True)
    lexical_weights = SparseVectorField(dimensions=DIMENSIONS, null=True)
    lexical_length = models.IntegerField(default=0)
    embedding = HalfVectorField(null=True)
    embedding_alternate = HalfVectorField(null=True)
    fingerprint = models.BigIntegerField(default=0)
    principals = ArrayField(models.CharField(max_length=300), default=public_only)
    live = models.BooleanField(default=True)
    enabled = models.BooleanField(default=True, help_text="Switched off: search does not see it.")
    edited_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "document", "live", "ordinal"], name="one_chunk_per_place"
            )
        ]
        ordering = ["document", "ordinal"]

    def __str__(self) -> str:
        return f"#{self.ordinal + 1}: {self.content[:60]}"
