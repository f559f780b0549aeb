"""The connections of a tenant: their list, and the way to their pages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from accounts.access import Action
from accounts.request import get_actor
from connectors.access import visible_connections
from connectors.admin.browse import browse_view
from connectors.admin.connect import connect_view, settings_view
from connectors.admin.connection_page import act_view, check_view, connection_view, state_view
from connectors.admin.deletion import deletion_view
from connectors.admin.gallery import gallery_view
from connectors.admin.health import CONNECTION_BADGES, RUN_BADGES, with_health
from connectors.admin.schedule_fields import schedule_text
from connectors.admin.source_admin import SourceAdmin
from connectors.admin.specs import connector_name
from connectors.models import Connection, SyncRun


@admin.register(Connection)
class ConnectionAdmin(SourceAdmin):
    """What is connected and how it is doing. A connection has a page of its own in place of the usual one."""

    add_action = Action.WRITE
    list_display = ("title", "knowledge_base", "state", "last_run", "documents", "syncs")
    show_add_link = False  # “Connect a source” says it better
    list_filter = ("status", "knowledge_base")
    search_fields = ("name", "connector")
    search_help_text = gettext_lazy("Search names and sources")
    ordering = ("-created_at", "-id")

    def get_urls(self) -> list[URLPattern]:
        """The gallery, the forms and what the page of a connection calls, beside the usual ones."""
        wrap, name = self.admin_site.admin_view, "connectors_connection"
        return [
            path("gallery/", wrap(gallery_view(self)), name="connectors_gallery"),
            path("connect/<str:kind>/", wrap(connect_view(self)), name=f"{name}_connect"),
            path("<uuid:pk>/settings/", wrap(settings_view(self)), name=f"{name}_settings"),
            path("<uuid:pk>/places/", wrap(browse_view(self)), name=f"{name}_browse"),
            path("<uuid:pk>/state/", wrap(require_GET(state_view)), name=f"{name}_state"),
            path("<uuid:pk>/check/", wrap(require_POST(check_view)), name=f"{name}_check"),
            path("<uuid:pk>/act/", wrap(require_POST(act_view)), name=f"{name}_act"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Connection]:
        """Those of the bases the person keeps, with their health."""
        return with_health(visible_connections(get_actor(request)))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """One begins by choosing a connector."""
        get_actor(request).require(Action.WRITE)
        return HttpResponseRedirect(reverse("admin:connectors_gallery"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of a connection."""
        return connection_view(self, request, object_id)

    def delete_view(
        self, request: HttpRequest, object_id: str | UUID, extra_context: Any = None
    ) -> HttpResponse:
        """Asks what becomes of the documents."""
        return deletion_view(self, request, object_id)

    @admin.display(description=gettext_lazy("name"), ordering="name")
    def title(self, connection: Connection) -> SafeString:
        """With the connector's name."""
        source = connector_name(connection.connector)
        return format_html(
            '<span>{}<br><span class="kb-note">{}</span></span>', connection.name, source
        )

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def state(self, connection: Connection) -> SafeString:
        """With the reason, if there is one."""
        kind = CONNECTION_BADGES[Connection.Status(connection.status)]
        badge = format_html(
            '<span class="kb-badge kb-{}">{}</span>', kind, connection.get_status_display()
        )
        if not connection.status_reason:
            return badge
        note = '{} <div class="kb-note kb-state">{}</div>'
        return format_html(note, badge, connection.status_reason)

    @admin.display(description=gettext_lazy("last sync"), ordering="last_created_at")
    def last_run(self, connection: Any) -> SafeString | str:
        """How it ended, and when it was."""
        if not connection.last_status:
            return _("never")
        status = SyncRun.Status(connection.last_status)
        ago = _("%s ago") % timesince(connection.last_created_at, depth=1)
        badge = '<span class="kb-badge kb-{}">{}</span> <span class="kb-note">{}</span>'
        return format_html(badge, RUN_BADGES[status], status.label, ago)

    @admin.display(description=gettext_lazy("documents"), ordering="count_documents")
    def documents(self, connection: Any) -> SafeString | str:
        """How many there are, and how many things went wrong."""
        told = [str(connection.count_documents)]
        if connection.count_failed:
            told.append(_("%d failed") % connection.count_failed)
        if connection.count_held:
            told.append(_("%d wait to be deleted") % connection.count_held)
        return ", ".join(told)

    @admin.display(description=gettext_lazy("looks for changes"))
    def syncs(self, connection: Connection) -> str:
        """The schedule."""
        return schedule_text(connection.schedule)
