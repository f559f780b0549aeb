"""Admin pages of webhooks and their log."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.access import Action
from accounts.admin_base import TenantAdmin
from accounts.models import WebhookDelivery, WebhookEndpoint
from accounts.request import get_actor
from accounts.services.webhooks import (
    CHOOSABLE,
    create_webhook,
    delete_webhook,
    ping_webhook,
    replay_delivery,
    update_webhook,
)


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    """Where to send what."""

    event_types = forms.MultipleChoiceField(
        label=_("events"),
        choices=[(event.value, event.label) for event in CHOOSABLE],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("url", "description", "event_types", "enabled")


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(TenantAdmin):
    """Webhooks; the secret of a new one is shown once."""

    view_action = add_action = change_action = delete_action = Action.ADMIN
    form = WebhookForm
    list_display = ("__str__", "url", "shown_events", "health", "created_at")
    list_filter = ("enabled",)
    search_fields = ("url", "description")
    ordering = ("-created_at",)
    actions = ("ping",)

    def get_fields(
        self, request: HttpRequest, obj: WebhookEndpoint | None = None
    ) -> tuple[str, ...]:
        """What is asked of a new one, or everything known."""
        if obj is None:
            return ("url", "description", "event_types")
        return (
            "url", "description", "event_types", "enabled", "health", "disabled_reason", "created_by",
            "created_at",
        )  # fmt: skip

    def get_readonly_fields(
        self, request: HttpRequest, obj: WebhookEndpoint | None = None
    ) -> tuple[str, ...]:
        """What the sending writes."""
        return () if obj is None else ("health", "disabled_reason", "created_by", "created_at")

    def save_model(
        self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: Any
    ) -> None:
        """Make it, keeping the secret for the page that follows, or change it."""
        actor = get_actor(request)
        if change:
            values = {name: form.cleaned_data[name] for name in form.changed_data}
            update_webhook(actor=actor, endpoint=obj, **values)
            return
        made, secret = create_webhook(
            actor=actor, url=obj.url, event_types=obj.event_types, description=obj.description
        )
        obj.id, obj.tenant_id = made.id, made.tenant_id
        request.webhook_secret = secret  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: WebhookEndpoint, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret once. Not through a message: those are kept in a cookie."""
        del post_url_continue
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Webhook made"),
            "opts": self.opts,
            "webhook": obj,
            "secret": getattr(request, "webhook_secret", ""),
        }
        page = "admin/accounts/webhookendpoint/created.html"
        return TemplateResponse(request, page, context, headers={"Cache-Control": "no-store"})

    def delete_model(self, request: HttpRequest, obj: WebhookEndpoint) -> None:
        """Remove it with its log."""
        delete_webhook(actor=get_actor(request), endpoint=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        """Remove several."""
        for endpoint in queryset:
            self.delete_model(request, endpoint)

    @admin.action(description=_("Send a test"), permissions=["change"])
    def ping(self, request: HttpRequest, queryset: QuerySet[WebhookEndpoint]) -> None:
        """What came of it is in the log."""
        for endpoint in queryset:
            ping_webhook(actor=get_actor(request), endpoint=endpoint)
        messages.success(request, gettext("Sent. See the log of deliveries for the answer."))

    @admin.display(description=_("events"))
    def shown_events(self, endpoint: WebhookEndpoint) -> str:
        """Comma-separated."""
        return ", ".join(endpoint.event_types)

    @display(  # type: ignore[untyped-decorator]
        description=_("state"),
        label={"working": "success", "failing": "warning", "disabled": "danger"},
    )
    def health(self, endpoint: WebhookEndpoint) -> tuple[str, str]:
        """Whether messages arrive."""
        if not endpoint.enabled:
            return "disabled", gettext("disabled")
        if endpoint.failing_since:
            return "failing", gettext("failing")
        return "working", gettext("working")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(TenantAdmin):
    """What webhooks were told; only to be read and sent again."""

    view_action = Action.ADMIN
    list_display = ("created_at", "endpoint", "event_type", "state", "status_code", "attempts")
    list_filter = ("status", "event_type", "endpoint")
    list_select_related = ("endpoint",)
    ordering = ("-created_at", "-id")
    show_full_result_count = False
    actions = ("replay",)

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Whoever sees the log may send again."""
        return self.has_view_permission(request)

    @admin.action(description=_("Send again"), permissions=["replay"])
    def replay(self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]) -> None:
        """Those that are on their way are left alone."""
        waiting = queryset.exclude(status=WebhookDelivery.Status.PENDING)
        deliveries = list(waiting.select_related("endpoint"))
        for delivery in deliveries:
            replay_delivery(actor=get_actor(request), delivery=delivery)
        count = len(deliveries)
        text = ngettext("%(count)d event sent again.", "%(count)d events sent again.", count)
        messages.success(request, text % {"count": count})

    @display(  # type: ignore[untyped-decorator]
        description=_("state"),
        label={"pending": "info", "succeeded": "success", "failed": "danger"},
    )
    def state(self, delivery: WebhookDelivery) -> tuple[str, str]:
        """Whether it has arrived."""
        return delivery.status, delivery.get_status_display()
