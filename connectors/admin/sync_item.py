"""The ledger: everything seen at the sources, and what could not be read; read only but for retrying."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.request import get_actor
from connectors.access import visible_connections
from connectors.admin.health import ITEM_BADGES
from connectors.admin.source_admin import SourceAdmin
from connectors.models import SyncItem
from connectors.services.runs import retry_item
from knowledge.admin.service_forms import messages_for_errors


@admin.register(SyncItem)
class SyncItemAdmin(SourceAdmin):
    """One row for each thing at a source."""

    list_display = (
        "thing",
        "connection",
        "state",
        "attempts",
        "next_retry_at",
        "document",
        "seen_at",
    )
    list_filter = ("connection", "status", "stage")
    search_fields = ("title", "external_id", "error")
    search_help_text = gettext_lazy("Search titles, ids and errors")
    ordering = ("-id",)
    actions = ("retry",)
    fields = readonly_fields = (
        "connection", "title", "external_id", "scope", "state", "stage", "attempts", "next_retry_at", "document",
        "version", "seen_at", "created_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[SyncItem]:
        """Those of the connections the person keeps."""
        items: QuerySet[SyncItem] = SyncItem.objects.filter(
            connection__in=visible_connections(get_actor(request))
        )
        return items.select_related("connection")

    @admin.action(description=gettext_lazy("Retry"), permissions=["view"])
    def retry(self, request: HttpRequest, queryset: QuerySet[SyncItem]) -> None:
        """One run for each connection; it takes along whatever else has failed there."""
        failed = queryset.filter(status=SyncItem.Status.FAILED)
        by_connection = {item.connection_id: item for item in failed}
        if not by_connection:
            messages.warning(request, _("Only failed items are tried again."))
        for item in by_connection.values():
            with messages_for_errors(request):
                retry_item(actor=get_actor(request), item=item)
                text = _("The failed items of %s are being tried again.") % item.connection
                messages.success(request, text)

    @admin.display(description=gettext_lazy("title"), ordering="title")
    def thing(self, item: SyncItem) -> SafeString:
        """With its id at the source, where that says more."""
        title, name = Truncator(str(item)).chars(90), Truncator(item.external_id).chars(90)
        note = '<span class="kb-state">{}<span class="kb-note">{}</span></span>'
        return format_html(note, title, "" if title == name else name)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, item: SyncItem) -> SafeString:
        """With what went wrong."""
        kind = ITEM_BADGES[SyncItem.Status(item.status)]
        badge = format_html(
            '<span class="kb-badge kb-{}">{}</span>', kind, item.get_status_display()
        )
        note = '{} <div class="kb-note kb-state">{}</div>'
        return format_html(note, badge, Truncator(item.error).chars(300)) if item.error else badge

    @admin.display(description=gettext_lazy("document"))
    def document(self, item: SyncItem) -> SafeString | str:
        """What it became."""
        if item.document_id is None:
            return "–"
        url = reverse("admin:knowledge_document_change", args=[item.document_id])
        return format_html('<a class="kb-link" href="{}">{}</a>', url, _("Open"))
