"""The runs over golden queries, with what changed in each; read only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Action
from accounts.admin_base import TenantAdmin
from accounts.request import get_actor
from search.admin.golden import status_badge
from search.golden_states import CHANGE_KINDS
from search.models import GoldenResult, GoldenRun, GoldenStatus
from search.services.golden import visible_golden_runs
from search.services.golden_runs import results_of, run_before, state_at


@admin.register(GoldenRun)
class GoldenRunAdmin(TenantAdmin):
    """The last runs of each base."""

    view_action = Action.WRITE
    list_display = ("started", "knowledge_base", "trigger", "state", "changed", "started_by")
    list_filter = ("knowledge_base", "trigger")
    ordering = ("-started_at", "-id")
    list_per_page = 50
    show_full_result_count = False
    fields = (
        ("knowledge_base", "trigger"),
        ("started_at", "finished_at"),
        ("started_by", "embedding_model"),
        ("newest_indexed_at", "document_count"),
    )
    readonly_fields = (
        "knowledge_base", "trigger", "started_at", "finished_at", "started_by", "embedding_model",
        "newest_indexed_at", "document_count",
    )  # fmt: skip
    change_form_before_template = "admin/search/goldenrun/changes.html"
    change_form_outer_after_template = "admin/search/goldenrun/results.html"

    class Media:
        css = {"all": ["css/knowledge.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[GoldenRun]:
        """Those of the bases the person keeps, with how much changed in each."""
        changed = GoldenResult.objects.filter(run_id=OuterRef("id")).exclude(change="").order_by()
        count = changed.values("run_id").annotate(n=Count("id")).values("n")
        count_changed = Coalesce(Subquery(count, output_field=IntegerField()), 0)
        return visible_golden_runs(get_actor(request)).annotate(count_changed=count_changed)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """With what the base has been through since the run before, and every result."""
        run = self.get_object(request, object_id)
        context = extra_context or {}
        if run is not None:
            context |= {
                "run": run,
                "counts": counts_of(run),
                "base_changes": base_changes(run),
                "results": [
                    (
                        result,
                        status_badge(result.status, result.get_status_display()),
                        CHANGE_KINDS.get(result.change),
                    )
                    for result in results_of(run)
                ],
            }
        return super().change_view(request, object_id, form_url, context)

    @admin.display(description=gettext_lazy("started"), ordering="started_at")
    def started(self, run: GoldenRun) -> str:
        """When."""
        return f"{localtime(run.started_at):%Y-%m-%d %H:%M:%S}"

    @admin.display(description=gettext_lazy("green / red / not judged"))
    def state(self, run: GoldenRun) -> SafeString | str:
        """How many of each."""
        return counts_of(run) if run.finished_at else _("Running, or cut off")

    @admin.display(description=gettext_lazy("changed"), ordering="count_changed")
    def changed(self, run: Any) -> int:
        """How many turned or moved."""
        return int(run.count_changed)


def counts_of(run: GoldenRun) -> SafeString:
    """A badge for each status that occurs."""
    rows = (
        (GoldenStatus.GREEN, run.green),
        (GoldenStatus.RED, run.red),
        (GoldenStatus.UNKNOWN, run.unknown),
    )
    shown = ((status_badge(status, str(count)),) for status, count in rows if count)
    return format_html('<span class="kb-badges">{}</span>', format_html_join(" ", "{}", shown))


def base_changes(run: GoldenRun) -> list[str]:
    """What the base has been through since the run before, in words; empty for the first run."""
    earlier = run_before(run)
    if earlier is None:
        return []
    before, now = state_at(earlier), state_at(run)
    told = []
    if before.embedding_model != now.embedding_model:
        text = _("The embedding model changed from {before} to {now}.")
        told.append(text.format(before=before.embedding_model, now=now.embedding_model))
    elif before.embedding_field != now.embedding_field:
        told.append(_("The passages were embedded anew."))
    if before.newest_indexed_at != now.newest_indexed_at and now.newest_indexed_at:
        when = f"{localtime(now.newest_indexed_at):%Y-%m-%d %H:%M}"
        told.append(_("Documents were indexed, the last one on {when}.").format(when=when))
    difference = now.document_count - before.document_count
    if difference:
        text = ngettext("{n:+} document.", "{n:+} documents.", abs(difference))
        told.append(text.format(n=difference))
    if before.newest_edited_at != now.newest_edited_at:
        told.append(_("A chunk of a wanted document was edited by hand."))
    return told
