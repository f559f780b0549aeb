"""The pages on which a connection is made and changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import Action
from accounts.request import get_actor
from connectors.access import access_connection
from connectors.admin.connection_form import ConnectionForm
from connectors.admin.gallery import capability_words
from connectors.admin.schedule_fields import time_zones
from connectors.registry import connector_class
from knowledge.access import visible_knowledge_bases
from knowledge.models import KnowledgeBase

PAGE = "admin:connectors_connection_change"


def connect_view(model_admin: ModelAdmin[Any]) -> Callable[..., HttpResponse]:
    """The form for a new connection of one connector."""

    def view(request: HttpRequest, kind: str) -> HttpResponse:
        actor = get_actor(request)
        actor.require(Action.WRITE)
        connector = connector_class(kind)
        form = ConnectionForm(request.POST or None, actor=actor, connector=connector)
        if form.is_valid() and (connection := form.save()):
            text = _("Connected. Check that the source is reached, then start the first sync.")
            messages.success(request, text)
            return HttpResponseRedirect(reverse(PAGE, args=[connection.id]))
        bases = visible_knowledge_bases(actor).filter(status=KnowledgeBase.Status.ACTIVE)
        context = {
            "title": _("Connect %s") % connector.spec.name,
            "no_bases": not bases.exists(),
            "back": reverse("admin:connectors_gallery"),
        }
        return _page(model_admin, request, form, context)

    return view


def settings_view(model_admin: ModelAdmin[Any]) -> Callable[..., HttpResponse]:
    """The form of a connection that is there."""

    def view(request: HttpRequest, pk: UUID) -> HttpResponse:
        actor = get_actor(request)
        connection = access_connection(actor, pk)
        connector = connector_class(connection.connector)
        form = ConnectionForm(
            request.POST or None, actor=actor, connector=connector, connection=connection
        )
        page = reverse(PAGE, args=[connection.id])
        if form.is_valid() and form.save():
            messages.success(request, _("The settings were saved."))
            return HttpResponseRedirect(page)
        name = access_connection(actor, pk).name  # as stored; a refused change is in `connection`
        context = {"title": _("Settings of %s") % name, "connection": connection, "back": page}
        return _page(model_admin, request, form, context)

    return view


def _page(
    model_admin: ModelAdmin[Any],
    request: HttpRequest,
    form: ConnectionForm,
    context: dict[str, Any],
) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "form": form,
        "spec": form.spec,
        "capabilities": capability_words(form.spec.kind),
        "time_zones": time_zones(),
        **context,
    }
    return TemplateResponse(request, "admin/connectors/connection/settings.html", context)
