"""Telling webhooks what became of documents."""

from __future__ import annotations

from uuid import UUID

from accounts.models import WebhookEvent
from accounts.services.webhooks import emit_event, is_wanted
from knowledge.models import Document


def announce_document(event: WebhookEvent, document: Document) -> None:
    """Tell those who want to know, in the present transaction. Mostly there is nobody: that costs one query."""
    if not is_wanted(event):
        return
    data = {
        "document_id": str(document.replaces_id or document.id),
        "knowledge_base_id": str(document.knowledge_base_id),
        "title": document.title,
        "external_id": document.external_id,
        "source": document.source,
        "source_id": str(document.source_id) if document.source_id else None,
        "status": document.status,
        "error": document.error,
        "error_code": document.error_code,
    }
    emit_event(document.tenant_id, event, data)


def announce_failure(document_id: UUID) -> None:
    """The same for a document that is known by its id."""
    if not is_wanted(WebhookEvent.DOCUMENT_FAILED):
        return
    document = Document.objects.filter(id=document_id).defer("extracted_text").first()
    if document is not None:
        announce_document(WebhookEvent.DOCUMENT_FAILED, document)
