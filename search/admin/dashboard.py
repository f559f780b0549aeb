"""The first page: how much there is, what needs attention, what was searched."""

from __future__ import annotations

from typing import Any

from django.db.models import Sum
from django.http import HttpRequest

from accounts.access import Action, Actor
from knowledge.access import visible_documents, visible_knowledge_bases
from knowledge.admin.document_state import state_context
from knowledge.counts import with_counts
from knowledge.models import Document
from search.golden_states import golden_states
from search.services.history import recorded_searches

_ROWS = 8


def dashboard_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds what `templates/admin/index.html` shows. A person without a tenant sees none of it."""
    actor: Actor | None = getattr(request, "actor", None)
    if actor is None or not actor.may(Action.READ):
        return context
    bases = list(with_counts(visible_knowledge_bases(actor)).order_by("name"))
    documents = (
        visible_documents(actor).select_related("knowledge_base").prefetch_related("replacements")
    )
    attention = documents.exclude(status=Document.Status.READY).order_by("-updated_at")[:_ROWS]
    totals = documents.aggregate(chunks=Sum("chunk_count"))
    searches = list(recorded_searches()[:_ROWS]) if actor.may(Action.ADMIN) else []
    first_base = bases[0] if bases else None
    has_documents = documents.exists()
    dashboard = {
        "bases": bases,
        "documents": documents.count(),
        "unfinished": documents.filter(status__in=["pending", "processing"]).count(),
        "failed": documents.filter(status=Document.Status.FAILED).count(),
        "chunks": totals["chunks"] or 0,
        "attention": [state_context(document) for document in attention],
        "searches": searches,
        "sees_searches": actor.may(Action.ADMIN),
        "first_base": first_base,
        "first_steps": not (bases and has_documents),
        "may_write": actor.may(Action.WRITE),
        "golden": golden_states(actor),
    }
    return {**context, "dashboard": dashboard}
