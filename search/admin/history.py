"""What was searched and what people thought of it; read only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from accounts.access import Action
from accounts.admin_base import TenantAdmin
from accounts.request import get_actor
from knowledge.access import visible_chunks
from search.admin.test_page import search_test_view
from search.models import SearchQuery
from search.services.history import recorded_searches

_SHOWN_RESULTS = 20
_STEPS = (
    "analyse_query",
    "embed_query",
    "filename",
    "lexical",
    "vector",
    "retrieve",
    "fuse",
    "load",
)


@admin.register(SearchQuery)
class SearchQueryAdmin(TenantAdmin):
    """The search history. What others searched is for administrators."""

    view_action = Action.ADMIN
    list_display = (
        "short_query",
        "mode",
        "strategy",
        "result_count",
        "total",
        "actor",
        "created_at",
    )
    list_filter = ("mode", "strategy")
    search_fields = ("query", "actor")
    ordering = ("-created_at", "-id")
    list_per_page = 50
    show_full_result_count = False
    fields = (
        "query",
        ("mode", "strategy"),
        ("result_count", "total"),
        ("actor", "created_at"),
        "request",
    )
    readonly_fields = (
        "query", "mode", "strategy", "result_count", "total", "actor", "created_at", "request",
    )  # fmt: skip
    change_form_outer_after_template = "admin/search/searchquery/detail.html"

    class Media:
        css = {"all": ["css/knowledge.css"]}

    def get_urls(self) -> list[URLPattern]:
        """The search test beside the history."""
        view = self.admin_site.admin_view(search_test_view(self))
        return [path("test/", view, name="search_test"), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SearchQuery]:
        """Every search of the tenant."""
        return recorded_searches()

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """With timings, results and feedback."""
        found = self.get_object(request, object_id)
        context = extra_context or {}
        if found is not None:
            context |= {
                "timings": timing_rows(found.timings_ms),
                "results": _results(request, found),
                "feedback": found.feedback.order_by("-created_at"),
                "again": again_url(found),
            }
        return super().change_view(request, object_id, form_url, context)

    @admin.display(description=_("query"), ordering="query")
    def short_query(self, search: SearchQuery) -> str:
        """Its beginning."""
        return Truncator(search.query).chars(90) or "–"

    @admin.display(description=_("total ms"), ordering="total_ms")
    def total(self, search: SearchQuery) -> str:
        """How long it took."""
        return f"{search.total_ms:.1f}"


def timing_rows(timings: dict[str, float]) -> list[tuple[str, float]]:
    """Steps in the order they run; the database does not keep it."""
    last = len(_STEPS)
    order = {name: number for number, name in enumerate(_STEPS)}
    return sorted(timings.items(), key=lambda row: (row[0] == "total", order.get(row[0], last)))


def again_url(search: SearchQuery) -> str:
    """The search test filled in with a past search."""
    asked = search.request if isinstance(search.request, dict) else {}
    bases = asked.get("knowledge_bases") or []
    query = [("query", search.query), ("mode", search.mode), ("strategy", search.strategy)]
    query += [("bases", str(base)) for base in bases]
    return f"{reverse('admin:search_test')}?{urlencode(query)}"


def _results(request: HttpRequest, search: SearchQuery) -> list[dict[str, Any]]:
    """The passages it returned, in order; those deleted since are named as such."""
    wanted = search.chunk_ids[:_SHOWN_RESULTS]
    chunks = visible_chunks(get_actor(request)).filter(id__in=wanted)
    chunks = chunks.select_related("document").defer(
        "lexemes", "lexical_weights", "embedding", "document__extracted_text"
    )
    found = {chunk.id: chunk for chunk in chunks}
    return [{"id": chunk_id, "chunk": found.get(chunk_id)} for chunk_id in wanted]
