"""The state of documents as the admin shows it, on a page and while it changes."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from accounts.access import Action, as_uuid
from accounts.request import get_actor
from knowledge.access import visible_documents
from knowledge.api.serializers import DocumentSerializer, progress_of
from knowledge.models import Document

_MAX_IDS = 200
_BADGES = {
    Document.Status.PENDING: "busy",
    Document.Status.PROCESSING: "busy",
    Document.Status.READY: "ok",
    Document.Status.FAILED: "bad",
}


def render_state(document: Document) -> str:
    """The badge with live progress, or with what went wrong."""
    return render_to_string("admin/knowledge/document/state.html", state_context(document))


def state_context(document: Document) -> dict[str, Any]:
    """What a template needs to show a document's state."""
    progress = progress_of(document)
    percent = None
    if progress and progress["total"]:
        percent = min(100, round(100 * progress["done"] / progress["total"]))
    return {
        "document": document,
        "badge": _BADGES[Document.Status(document.status)],
        "progress": progress,
        "percent": percent,
        "by_words": document.stage == Document.Stage.EMBEDDING and document.is_unfinished,
        "remarks": DocumentSerializer().get_warnings(document),
        "is_changing": is_changing(document),
    }


def is_changing(document: Document) -> bool:
    """Whether looking again soon is worth it."""
    newer = any(version.is_unfinished for version in document.replacements.all())
    return document.is_unfinished or newer


def coverage_text(document: Document) -> str:
    """`12 of 12 pages`, or nothing while that is unknown."""
    if not document.coverage_unit:
        return "–"
    return _("%(indexed)s of %(found)s %(unit)s") % {
        "indexed": document.coverage_indexed,
        "found": document.coverage_found,
        "unit": document.coverage_unit,
    }


def progress_view(request: HttpRequest) -> JsonResponse:
    """The present state of the documents asked for by `id`; those not visible are left out."""
    actor = get_actor(request)
    actor.require(Action.READ)
    ids = [found for text in request.GET.getlist("id")[:_MAX_IDS] if (found := as_uuid(text))]
    documents = visible_documents(actor).filter(id__in=ids).prefetch_related("replacements")
    return JsonResponse(
        {"documents": {str(document.id): _state(document) for document in documents}}
    )


def _state(document: Document) -> dict[str, Any]:
    return {
        "status": document.status,
        "changing": is_changing(document),
        "html": render_state(document),
        "coverage": coverage_text(document),
        "chunks": document.chunk_count,
        "progress": progress_of(document),
    }
