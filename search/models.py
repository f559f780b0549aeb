"""What was searched and what people thought of it; golden queries and their runs; synonyms."""

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


class GoldenStatus(models.TextChoices):
    """Whether a golden query finds its passage. `UNKNOWN`: not checked yet, or the search was not whole."""

    UNKNOWN = "unknown", "Not checked"
    GREEN = "green", "Green"
    RED = "red", "Red"


class GoldenQuery(TenantModel):
    """A question and the passage that must stand among its first `within` results.

    The passage is kept as its document and a literal quote, so that it outlives cutting and indexing
    the document anew; heading and ordinal only help people to recognise it. `document_id` is no foreign
    key: when the document is deleted the golden query has to stay and turn red.
    """

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="golden_queries")
    query = models.TextField(help_text="The question, as people ask it.")
    strategy = models.CharField(max_length=10, default="hybrid")
    filter = models.JSONField(null=True, blank=True, help_text="As in the API; empty: none.")
    within = models.PositiveSmallIntegerField(
        default=5, help_text="The passage has to be among the first so many results."
    )
    document_id = models.UUIDField(editable=False)
    document_title = models.CharField(max_length=500, editable=False)
    quote = models.TextField(
        help_text="Text of the wanted passage. A shorter quote makes a sharper check: a result counts "
        "when it holds the quote, or half of it where the passage has been cut in two."
    )
    heading = ArrayField(models.TextField(), default=list, blank=True, editable=False)
    ordinal = models.IntegerField(default=0, editable=False)
    enabled = models.BooleanField(default=True, help_text="Switched off: runs leave it out.")
    note = models.TextField(blank=True, help_text="Why this matters; for people.")
    status = models.CharField(
        max_length=10, choices=GoldenStatus, default=GoldenStatus.UNKNOWN, editable=False
    )
    rank = models.PositiveSmallIntegerField(null=True, editable=False)
    previous_rank = models.PositiveSmallIntegerField(null=True, editable=False)
    reason = models.TextField(blank=True, editable=False)
    checked_at = models.DateTimeField(null=True, editable=False)
    created_by = models.CharField(max_length=300, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "golden queries"
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="golden_newest_first")
        ]
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.query[:80]


class GoldenRun(TenantModel):
    """One check of all golden queries of a base, with the state of the base it was made in."""

    class Trigger(models.TextChoices):
        ON_DEMAND = "on_demand", "On demand"
        RE_INDEX = "re_index", "Documents changed"
        MODEL_CHANGE = "model_change", "Embedding model changed"
        SCHEDULE = "schedule", "Schedule"

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="golden_runs")
    trigger = models.CharField(max_length=12, choices=Trigger)
    started_by = models.CharField(max_length=300)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    green = models.IntegerField(default=0)
    red = models.IntegerField(default=0)
    unknown = models.IntegerField(default=0)
    embedding_model = models.CharField(max_length=200)
    embedding_field = models.CharField(max_length=20)
    newest_indexed_at = models.DateTimeField(null=True)
    newest_edited_at = models.DateTimeField(null=True)
    document_count = models.IntegerField(default=0)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "knowledge_base", "-started_at", "-id"],
                name="golden_run_newest_first",
            )
        ]
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return f"{self.get_trigger_display()}, {self.started_at:%Y-%m-%d %H:%M}"

    @property
    def total(self) -> int:
        """Golden queries that took part."""
        return self.green + self.red + self.unknown


class GoldenResult(TenantModel):
    """What one run found for one golden query, beside what was known before."""

    class Change(models.TextChoices):
        TURNED_RED = "turned_red", "Turned red"
        TURNED_GREEN = "turned_green", "Turned green"
        MOVED = "moved", "Moved"
        NONE = "", "Unchanged"

    run = TenantForeignKey("search.GoldenRun", related_name="results")
    golden_query = TenantForeignKey("search.GoldenQuery", related_name="results")
    status = models.CharField(max_length=10, choices=GoldenStatus)
    rank = models.PositiveSmallIntegerField(null=True)
    previous_status = models.CharField(max_length=10, choices=GoldenStatus)
    previous_rank = models.PositiveSmallIntegerField(null=True)
    reason = models.TextField(blank=True)
    change = models.CharField(max_length=12, choices=Change, default=Change.NONE, blank=True)
    first_chunk_id = models.UUIDField(null=True)
    first_title = models.CharField(max_length=500, blank=True)
    first_snippet = models.TextField(blank=True)

    class Meta(TenantModel.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.status} {self.reason[:60]}"


class SynonymSet(TenantModel):
    """Words and short phrases that mean the same. A query that holds one of them looks for the others too.

    `keys` are what a query finds the set by (`knowledge.lexical.phrases`); they follow from the terms.
    """

    knowledge_base = TenantForeignKey(
        "knowledge.KnowledgeBase",
        related_name="synonym_sets",
        null=True,
        blank=True,
        help_text="Holds for passages of this knowledge base only. Empty: for those of all.",
    )
    terms = ArrayField(models.CharField(max_length=100))
    one_way = models.BooleanField(
        default=False,
        help_text="The first term also finds the others, but they do not find the first: “vehicle” finds "
        "“car” and “truck”, and “car” only itself.",
    )
    enabled = models.BooleanField(default=True, help_text="Switched off: searches leave it out.")
    note = models.TextField(blank=True, help_text="Why it is here; for people.")
    keys = ArrayField(models.CharField(max_length=200), default=list, editable=False)
    created_by = models.CharField(max_length=300, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="synonyms_newest_first")
        ]
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return ", ".join(self.terms)

    @property
    def asked_terms(self) -> list[str]:
        """The terms that make a query look for the others."""
        return self.terms[:1] if self.one_way else list(self.terms)
