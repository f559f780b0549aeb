"""The history of syncs; read only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from accounts.request import get_actor
from connectors.access import access_run, visible_connections
from connectors.admin.health import RUN_BADGES, run_context
from connectors.admin.source_admin import SourceAdmin
from connectors.models import SyncRun


@admin.register(SyncRun)
class SyncRunAdmin(SourceAdmin):
    """The last runs of each connection."""

    list_display = ("started", "connection", "kind", "state", "counts", "took", "trigger")
    list_filter = ("connection", "status", "kind")
    ordering = ("-created_at", "-id")
    change_form_before_template = "admin/connectors/syncrun/before.html"
    fields = readonly_fields = (
        "connection", "kind", "trigger", "created_at", "started_at", "finished_at", "attempts", "error_code",
    )  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        """The live state beside the usual pages."""
        view = self.admin_site.admin_view(require_GET(state_view))
        return [
            path("<uuid:pk>/state/", view, name="connectors_syncrun_state"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SyncRun]:
        """Those of the connections the person keeps."""
        runs: QuerySet[SyncRun] = SyncRun.objects.filter(
            connection__in=visible_connections(get_actor(request))
        )
        return runs.select_related("connection")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """With the state, the counts and the warnings above the facts."""
        run = self.get_object(request, object_id)
        context = {**(extra_context or {}), **run_context(run)}
        return super().change_view(request, object_id, form_url, context)

    @admin.display(description=gettext_lazy("queued"), ordering="created_at")
    def started(self, run: SyncRun) -> str:
        """When it was asked for."""
        return f"{localtime(run.created_at):%Y-%m-%d %H:%M:%S}"

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, run: SyncRun) -> SafeString:
        """With what went wrong."""
        badge = format_html(
            '<span class="kb-badge kb-{}">{}</span>',
            RUN_BADGES[SyncRun.Status(run.status)],
            run.get_status_display(),
        )
        told = run.error or next(iter(run.warnings), "")
        note = '{} <div class="kb-note kb-state">{}</div>'
        return format_html(note, badge, Truncator(told).chars(160)) if told else badge

    @admin.display(description=gettext_lazy("new / changed / deleted / failed"))
    def counts(self, run: SyncRun) -> str:
        """What it did."""
        return f"{run.inserted} / {run.updated} / {run.deleted} / {run.failed}"

    @admin.display(description=gettext_lazy("took"))
    def took(self, run: SyncRun) -> str:
        """From the first work on it to its end."""
        if run.started_at is None or run.finished_at is None:
            return "–"
        return _("%d s") % round((run.finished_at - run.started_at).total_seconds())


def state_view(request: HttpRequest, pk: UUID) -> JsonResponse:
    """The part of a run's page that changes by itself."""
    run = access_run(get_actor(request), pk)
    html = render_to_string("admin/connectors/syncrun/state.html", run_context(run))
    return JsonResponse({"changing": run.is_unfinished, "html": html})
