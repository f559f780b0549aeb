"""Golden queries: saved from the search test, listed with their state, run by a button."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts.access import Action
from accounts.request import get_actor
from config.errors import InvalidInputError
from knowledge.access import access_chunk, access_knowledge_base
from knowledge.admin.service_admin import ServiceAdmin
from knowledge.admin.service_forms import ServiceForm, messages_for_errors
from knowledge.models import Document
from search.admin.test_page import STRATEGIES, FilterField
from search.golden_states import STATUS_KINDS, golden_states
from search.models import GoldenQuery, GoldenStatus
from search.services.golden import (
    EDITABLE,
    access_golden_query,
    change_golden_query,
    delete_golden_query,
    refresh_golden_query,
    save_golden_query,
    visible_golden_queries,
)
from search.services.golden_runs import run_golden_queries

_SHOWN_RESULTS = 20


class GoldenQueryForm(ServiceForm):
    """What may be changed. Saving checks it at once."""

    strategy = forms.ChoiceField(
        label=gettext_lazy("Strategy"), choices=STRATEGIES, widget=UnfoldAdminSelectWidget()
    )
    filter = FilterField(
        label=gettext_lazy("Filter"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=gettext_lazy("As in the search test; empty: none."),
    )

    class Meta:
        model = GoldenQuery
        fields = EDITABLE
        widgets = {
            "query": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "quote": UnfoldAdminTextareaWidget(attrs={"rows": 8}),
            "note": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        }

    def clean_quote(self) -> str:
        """Browsers send line ends as CRLF."""
        quote: str = self.cleaned_data["quote"]
        return quote.replace("\r\n", "\n")

    def write(self, values: dict[str, Any]) -> GoldenQuery:
        """Change what differs, then look whether it is found."""
        golden = access_golden_query(self.actor, self.instance.pk)
        changed = {name: values[name] for name in EDITABLE if getattr(golden, name) != values[name]}
        if changed:
            change_golden_query(actor=self.actor, golden=golden, **changed)
            refresh_golden_query(golden)
        return golden


@admin.register(GoldenQuery)
class GoldenQueryAdmin(ServiceAdmin):
    """The golden queries of the bases a person keeps. They are made on the search test page."""

    view_action = Action.WRITE  # they quote documents
    add_action: ClassVar[Action | None] = None
    form = GoldenQueryForm
    list_display = ("question", "knowledge_base", "state", "ranks", "passage")
    list_filter = ("knowledge_base", "status", "enabled")
    search_fields = ("query", "quote", "document_title")
    ordering = ("-created_at", "-id")
    list_per_page = 50
    list_before_template = "admin/search/goldenquery/bases.html"
    change_form_before_template = "admin/search/goldenquery/form_before.html"
    change_form_outer_after_template = "admin/search/goldenquery/results.html"
    readonly_fields = ("knowledge_base", "document_title", "created_by", "created_at", "updated_at")
    fieldsets = (
        (None, {"fields": ("query", ("strategy", "within"), "filter", "enabled")}),
        (gettext_lazy("The passage it must find"), {"fields": ("document_title", "quote")}),
        (
            gettext_lazy("Facts"),
            {"fields": ("note", ("knowledge_base", "created_by"), ("created_at", "updated_at"))},
        ),
    )

    def get_urls(self) -> list[URLPattern]:
        """Saving from the search test and running a base beside the usual pages."""
        wrap = self.admin_site.admin_view
        return [
            path("save/", wrap(require_POST(save_view)), name="search_goldenquery_save"),
            path("run/", wrap(require_POST(run_view)), name="search_goldenquery_run"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoldenQuery]:
        """Those of the bases the person keeps."""
        return visible_golden_queries(get_actor(request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """With the state of each base above the list."""
        actor = get_actor(request)
        states = golden_states(actor) if actor.may(Action.WRITE) else []
        chosen = request.GET.get("knowledge_base__id__exact")
        if chosen:
            states = [state for state in states if str(state.base.id) == chosen]
        return super().changelist_view(request, {**(extra_context or {}), "golden_states": states})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """With its state above the form and what the last runs found below."""
        golden = self.get_object(request, object_id)
        context = extra_context or {}
        if golden is not None:
            results = golden.results.select_related("run").order_by("-run__started_at")
            context |= {
                "golden": golden,
                "is_there": Document.objects.filter(id=golden.document_id).exists(),
                "badge": status_badge(golden.status, golden.get_status_display()),
                "results": [
                    (result, status_badge(result.status, result.get_status_display()))
                    for result in results[:_SHOWN_RESULTS]
                ],
            }
        return super().change_view(request, object_id, form_url, context)

    def delete_model(self, request: HttpRequest, obj: GoldenQuery) -> None:
        """With its results."""
        with messages_for_errors(request):
            delete_golden_query(actor=get_actor(request), golden=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[GoldenQuery]) -> None:
        """Each with its results."""
        for golden in queryset:
            self.delete_model(request, golden)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The database cascades, so nothing is collected here."""
        rows = list(objs)
        return [str(golden) for golden in rows], {str(_("Golden queries")): len(rows)}, set(), []

    @admin.display(description=gettext_lazy("question"), ordering="query")
    def question(self, golden: GoldenQuery) -> SafeString:
        """Its beginning."""
        text = Truncator(golden.query).chars(90)
        return format_html('<span class="kb-state">{}</span>', text)

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def state(self, golden: GoldenQuery) -> SafeString:
        """Green or red, and why."""
        if not golden.enabled:
            return status_badge(GoldenStatus.UNKNOWN, _("Switched off"))
        badge = status_badge(golden.status, golden.get_status_display())
        return format_html('{} <div class="kb-note kb-state">{}</div>', badge, golden.reason)

    @admin.display(description=gettext_lazy("rank before → now"), ordering="rank")
    def ranks(self, golden: GoldenQuery) -> str:
        """Beside how far down it may stand."""
        before, now = golden.previous_rank or "–", golden.rank or "–"
        return f"{before} → {now} (≤ {golden.within})"

    @admin.display(description=gettext_lazy("passage"), ordering="document_title")
    def passage(self, golden: GoldenQuery) -> SafeString:
        """Document and quote."""
        quote = Truncator(" ".join(golden.quote.split())).chars(100)
        return format_html('{}<div class="kb-note kb-state">{}</div>', golden.document_title, quote)


def status_badge(status: str, label: str) -> SafeString:
    """A coloured word."""
    kind = STATUS_KINDS[status]
    return format_html('<span class="kb-badge kb-{}">{}</span>', kind, label)


def save_view(request: HttpRequest) -> HttpResponse:
    """Keep a result of the search test as the passage its question must find."""
    actor = get_actor(request)
    actor.require(Action.WRITE)
    with messages_for_errors(request):
        chunk = access_chunk(actor, request.POST.get("chunk", ""), Action.WRITE)
        golden = save_golden_query(
            actor=actor,
            chunk=chunk,
            query=request.POST.get("query", ""),
            strategy=request.POST.get("strategy", ""),
            filter=_parse_filter(request.POST.get("filter", "")),
        )
        refresh_golden_query(golden)
        text = _("Saved as a golden query of {base}. {reason}")
        messages.success(request, text.format(base=golden.knowledge_base, reason=golden.reason))
    return _back(request, "admin:search_test")


def _parse_filter(text: str) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError as error:
        raise InvalidInputError(_("The filter is not valid JSON.")) from error


def run_view(request: HttpRequest) -> HttpResponse:
    """Run the golden queries of one base now."""
    actor = get_actor(request)
    actor.require(Action.WRITE)
    with messages_for_errors(request):
        base = access_knowledge_base(actor, request.POST.get("base", ""), Action.WRITE)
        run = run_golden_queries(actor=actor, base=base)
        text = _("{green} of {total} golden queries of {base} are green.")
        told = text.format(green=run.green, total=run.total, base=base)
        (messages.success if run.green == run.total else messages.warning)(request, told)
    return _back(request, "admin:search_goldenquery_changelist")


def _back(request: HttpRequest, otherwise: str) -> HttpResponse:
    """To the page the person came from."""
    page = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(page, {request.get_host()}, request.is_secure())
    return HttpResponseRedirect(page if is_ours else reverse(otherwise))
