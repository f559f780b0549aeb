"""A knowledge base: documents that are searched together."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.tenancy import TenantModel
from knowledge.services.chunking import ChunkingOptions


class KnowledgeBase(TenantModel):
    """One base. Its vectors come from one embedding model."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        ARCHIVED = "archived"

    class Language(models.TextChoices):
        AUTO = "auto", "Recognise for each passage"
        ENGLISH = "en", "English"
        CHINESE = "zh", "中文"
        JAPANESE = "ja", "日本語"
        KOREAN = "ko", "한국어"
        GERMAN = "de", "Deutsch"
        FRENCH = "fr", "Français"
        SPANISH = "es", "Español"
        ITALIAN = "it", "Italiano"
        PORTUGUESE = "pt", "Português"
        RUSSIAN = "ru", "Русский"
        ARABIC = "ar", "العربية"
        HINDI = "hi", "हिन्दी"

    class EmbeddingField(models.TextChoices):
        FIRST = "embedding"
        SECOND = "embedding_alternate"

    name = models.CharField(max_length=200)
    slug = models.SlugField(
        max_length=100,
        allow_unicode=True,
        blank=True,
        help_text="Short name used in searches and addresses. Empty: made from the name.",
    )
    description = models.TextField(
        blank=True, help_text="What an agent finds here, in a sentence or two."
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    embedding_model = models.CharField(max_length=200, editable=False)
    embedding_field = models.CharField(
        max_length=20,
        choices=EmbeddingField,
        default=EmbeddingField.FIRST,
        editable=False,
        help_text="The vector field of its chunks that holds this model's vectors.",
    )
    spare_model = models.CharField(
        max_length=200,
        default="",
        blank=True,
        editable=False,
        help_text="The model whose vectors the other field holds; empty: none, or leftovers.",
    )
    spare_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Since when the other field has not been of use to search; empty: it is empty.",
    )
    own_indexes = ArrayField(
        models.CharField(max_length=20),
        default=list,
        blank=True,
        editable=False,
        help_text="The chunk columns for which the base has a finished index of its own.",
    )
    source_boosts = models.JSONField(
        default=dict,
        blank=True,
        help_text='Factors for the scores of sources, such as {"wiki": 1.5}; 1 changes nothing.',
    )
    language = models.CharField(
        max_length=8,
        choices=Language,
        default=Language.AUTO,
        help_text="Language of the documents.",
    )
    chunk_size = models.PositiveIntegerField(
        default=256, help_text="Target length of a chunk in tokens."
    )
    chunk_overlap = models.PositiveIntegerField(
        default=32, help_text="Tokens that neighbouring chunks share."
    )
    chunk_separator = models.CharField(
        max_length=50,
        blank=True,
        help_text="Cut at this text first, e.g. --- on its own line. Empty: by structure only.",
    )
    average_length = models.FloatField(
        default=120.0,
        editable=False,
        help_text="Average terms in a chunk, as used in the stored BM25 weights.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="one_base_per_slug")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def spare_field(self) -> str:
        """The vector field that search does not read at present."""
        fields = self.EmbeddingField
        return fields.SECOND if self.embedding_field == fields.FIRST else fields.FIRST

    def chunking_options(self) -> ChunkingOptions:
        """How documents of this base are cut. Raises `InvalidInputError` for impossible values."""
        return ChunkingOptions(
            size=self.chunk_size,
            overlap=self.chunk_overlap,
            separator=self.chunk_separator.replace("\\n", "\n"),
        )
