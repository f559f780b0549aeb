"""Putting a fully indexed version in the place of the one before, in one transaction."""

from __future__ import annotations

from django.utils import timezone

from accounts.models import WebhookEvent
from knowledge.models import Chunk, Document
from knowledge.services.announcements import announce_document
from knowledge.services.originals import forget_originals
from knowledge.services.statistics import count_document

# What a new version brings along; identity (id, external id, creation) stays with the first row, and so
# does the boost, which an editor gave.
_VERSION_FIELDS = (
    "title", "filename", "content_type", "language", "source", "source_uri", "author", "breadcrumbs",
    "metadata", "principals", "size", "content_hash", "extracted_text", "warnings", "coverage_unit",
    "coverage_found", "coverage_indexed", "chunk_count", "embedded_count", "source_created_at",
    "source_updated_at",
)  # fmt: skip

_STATE_FIELDS = ("status", "stage", "error", "error_code", "embedded_count", "indexed_at")


def publish_version(document: Document) -> None:
    """Make the document's newest chunks the ones that search sees. The caller holds its row lock."""
    if document.replaces_id is not None:
        _replace(document)
        return
    if Chunk.objects.filter(document_id=document.id, live=False).exists():
        _drop_live_chunks(document)
        Chunk.objects.filter(document_id=document.id).update(
            live=True, principals=document.principals
        )
        count_document(document.id, sign=1)
    _mark_ready(document)
    document.save(update_fields=[*_STATE_FIELDS, "updated_at"])
    announce_document(WebhookEvent.DOCUMENT_READY, document)


def _replace(version: Document) -> None:
    target = Document.objects.select_for_update().get(id=version.replaces_id)
    forget_originals([target.original.name])
    _drop_live_chunks(target)
    Chunk.objects.filter(document_id=version.id).update(
        document_id=target.id, live=True, principals=version.principals
    )
    for name in _VERSION_FIELDS:
        setattr(target, name, getattr(version, name))
    target.original.name = version.original.name
    _mark_ready(target)
    # The version goes first: its content hash may be unique in the base.
    Document.objects.filter(id=version.id).delete()
    target.save()
    count_document(target.id, sign=1)
    announce_document(WebhookEvent.DOCUMENT_READY, target)


def _drop_live_chunks(document: Document) -> None:
    count_document(document.id, sign=-1)
    Chunk.objects.filter(document_id=document.id, live=True).delete()


def _mark_ready(document: Document) -> None:
    document.status, document.stage = Document.Status.READY, Document.Stage.DONE
    document.error = document.error_code = ""
    document.embedded_count = document.chunk_count
    document.indexed_at = timezone.now()
