"""The places of a source as a tree, to look at or to choose from; one level for each request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.request import get_actor
from config.errors import AppError
from connectors.access import access_connection
from connectors.admin.connect import PAGE
from connectors.models import Connection
from connectors.registry import connector_class
from connectors.services.connections import browse_connection, update_connection
from knowledge.admin.service_forms import messages_for_errors


def browse_view(model_admin: ModelAdmin[Any]) -> Callable[..., HttpResponse]:
    """The page; its script asks it for further levels as JSON."""

    def view(request: HttpRequest, pk: UUID) -> HttpResponse:
        actor = get_actor(request)
        connection = access_connection(actor, pk)
        if request.method == "POST":
            return _choose(request, actor, connection)
        level = _level(actor, connection, request.GET.get("parent", ""))
        if request.headers.get("Accept") == "application/json":
            return JsonResponse(level)
        context = {
            **model_admin.admin_site.each_context(request),
            **level,
            "title": _("Places of %s") % connection.name,
            "connection": connection,
            "chooses": has_places(connection),
            "chosen": _chosen(connection),
        }
        return TemplateResponse(request, "admin/connectors/connection/browse.html", context)

    return view


def has_places(connection: Connection) -> bool:
    """Whether what is chosen can be written into the configuration."""
    return bool(_field(connection))


def _level(actor: Actor, connection: Connection, parent: str) -> dict[str, Any]:
    """The places in one place, or why they cannot be read. No savepoint: see `check_view`."""
    chosen = set(_chosen(connection))
    try:
        nodes = browse_connection(actor=actor, connection=connection, parent=parent)
    except AppError as error:
        return {"parent": parent, "error": error.message, "nodes": []}
    shown = [
        {
            "id": node.id,
            "title": node.title,
            "has_children": node.has_children,
            "selectable": node.selectable,
            "chosen": node.id in chosen,
        }
        for node in nodes
    ]
    return {"parent": parent, "error": "", "nodes": shown}


def _choose(request: HttpRequest, actor: Actor, connection: Connection) -> HttpResponse:
    places = list(dict.fromkeys(request.POST.getlist("place")))
    with messages_for_errors(request):
        if has_places(connection) and places != _chosen(connection):
            config = {**connection.config, _field(connection): places}
            update_connection(actor=actor, connection=connection, config=config)
            text = _("The places were saved. The next sync compares everything in them.")
            messages.success(request, text)
    return HttpResponseRedirect(reverse(PAGE, args=[connection.id]))


def _chosen(connection: Connection) -> list[str]:
    found = connection.config.get(_field(connection))
    return [str(place) for place in found] if isinstance(found, list) else []


def _field(connection: Connection) -> str:
    """The list of the configuration that takes chosen places; empty: there is none."""
    field: str = getattr(connector_class(connection.connector), "places_field", "")
    return field
