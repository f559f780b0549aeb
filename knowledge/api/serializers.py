"""What the API says of bases, documents and chunks, and what it takes."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.boosts import BOOST_RULE

SETTINGS = ("language", "chunk_size", "chunk_overlap", "chunk_separator", "source_boosts")


class SettingsSerializer(serializers.ModelSerializer[KnowledgeBase]):
    """How documents of a base are cut and read, and what their sources count."""

    source_boosts = serializers.DictField(required=False)

    class Meta:
        model = KnowledgeBase
        fields = SETTINGS
        extra_kwargs = {name: {"required": False} for name in SETTINGS}


class KnowledgeBaseSerializer(serializers.ModelSerializer[KnowledgeBase]):
    """A base with its settings and counts."""

    settings = SettingsSerializer(source="*", required=False)
    counts = serializers.SerializerMethodField()

    class Meta:
        model = KnowledgeBase
        fields = (
            "id", "name", "slug", "description", "status", "embedding_model", "settings", "counts",
            "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = ("id", "embedding_model", "created_at", "updated_at")
        extra_kwargs = {"slug": {"required": False}}
        validators: list[Any] = []

    def get_counts(self, base: KnowledgeBase) -> dict[str, int]:
        """Documents by state and searchable chunks; annotated by the view."""
        names = ("documents", "ready", "unfinished", "failed", "chunks")
        return {name: getattr(base, f"count_{name}", 0) for name in names}


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document and the state of its ingestion."""

    knowledge_base = serializers.SlugRelatedField("slug", read_only=True)  # type: ignore[var-annotated]
    coverage = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    created_at = serializers.SerializerMethodField()
    updated_at = serializers.SerializerMethodField()

    class Meta:
        model = Document
        fields = (
            "id", "knowledge_base", "title", "filename", "content_type", "language", "author", "status",
            "error", "error_code", "warnings", "coverage", "progress", "chunk_count", "size", "content_hash", "source",
            "source_uri", "external_id", "metadata", "principals", "boost", "created_at", "updated_at", "indexed_at",
            "seen_at",
        )  # fmt: skip

    def get_created_at(self, document: Document) -> str:
        """The source's time where it states one, else ours."""
        return (document.source_created_at or document.created_at).isoformat()

    def get_updated_at(self, document: Document) -> str:
        """The source's time where it states one, else ours."""
        return (document.source_updated_at or document.updated_at).isoformat()

    def get_coverage(self, document: Document) -> dict[str, Any]:
        """Units of the source found against indexed."""
        return {
            "unit": document.coverage_unit,
            "found": document.coverage_found,
            "indexed": document.coverage_indexed,
        }

    def get_warnings(self, document: Document) -> list[str]:
        """Remarks on the content, and on a newer version that waits or failed."""
        remarks = list(document.warnings)
        for version in document.replacements.all():
            if version.status == Document.Status.FAILED:
                remarks.append(f"A newer version could not be indexed: {version.error}")
            else:
                remarks.append("A newer version is being indexed; this one is searched until then.")
        return remarks

    def get_progress(self, document: Document) -> dict[str, Any] | None:
        """Live progress of unfinished work: vectors done, rate in chunks a second, seconds left."""
        return progress_of(document)


def progress_of(document: Document) -> dict[str, Any] | None:
    """How far an unfinished document is; None once it is finished."""
    if not document.is_unfinished:
        return None
    done, total = document.embedded_count, document.chunk_count
    progress: dict[str, Any] = {
        "stage": document.stage or "queued",
        "message": document.get_stage_display(),
        "searchable": "words" if document.stage == Document.Stage.EMBEDDING else "no",
        "done": done,
        "total": total,
        "rate_per_s": None,
        "remaining_s": None,
    }
    if document.embedding_started_at and done:
        spent = (timezone.now() - document.embedding_started_at).total_seconds()
        rate = done / max(spent, 0.001)
        progress |= {"rate_per_s": round(rate, 2), "remaining_s": round((total - done) / rate, 1)}
    return progress


class DocumentChangeSerializer(serializers.Serializer[Document]):
    """The facts of a document that may be changed."""

    title = serializers.CharField(max_length=500, required=False)
    metadata = serializers.DictField(required=False)
    principals = serializers.ListField(child=serializers.CharField(max_length=300), required=False)
    source_uri = serializers.CharField(max_length=2000, required=False, allow_blank=True)


class DocumentPatchSerializer(DocumentChangeSerializer):
    """The same, with what an editor decides about a document that is there."""

    boost = serializers.FloatField(required=False, help_text=BOOST_RULE)


class NewDocumentSerializer(DocumentChangeSerializer):
    """A document given as JSON, or the facts beside an uploaded file."""

    title = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    content = serializers.CharField(
        required=False, default="", allow_blank=True, trim_whitespace=False
    )
    content_type = serializers.CharField(max_length=200, required=False, default="text/plain")
    external_id = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True
    )
    created_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    updated_at = serializers.DateTimeField(required=False, default=None, allow_null=True)


class ChunkSerializer(serializers.ModelSerializer[Chunk]):
    """A chunk with its place in the document."""

    document_id = serializers.UUIDField(read_only=True)
    location = serializers.SerializerMethodField()

    class Meta:
        model = Chunk
        fields = (
            "id", "document_id", "ordinal", "content", "enabled", "location", "language", "token_count",
            "edited_at",
        )  # fmt: skip

    def get_location(self, chunk: Chunk) -> dict[str, Any]:
        """Where the passage stands."""
        return location_of(chunk)


def location_of(chunk: Chunk) -> dict[str, Any]:
    """Where a passage stands: page, headings, offsets into the extracted text, sheet, row, line."""
    return {
        "page": chunk.page,
        "heading": chunk.heading_path,
        "start": chunk.start,
        "end": chunk.end,
        "line": chunk.line,
        "sheet": chunk.sheet,
        "row": chunk.row,
    }


class ChunkChangeSerializer(serializers.Serializer[Chunk]):
    """A correction by hand."""

    content = serializers.CharField(required=False, trim_whitespace=False)
    enabled = serializers.BooleanField(required=False)
