"""The page that asks, before a connection goes, whether its documents go too."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.request import get_actor
from connectors.access import access_connection
from connectors.services.connections import delete_connection
from knowledge.access import visible_documents
from knowledge.admin.service_forms import messages_for_errors

_KEEP, _DELETE = "keep", "delete"


def deletion_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, pk: UUID | str
) -> HttpResponse:
    """The question, and its answer."""
    actor = get_actor(request)
    connection = access_connection(actor, pk)
    answer = request.POST.get("documents")
    if request.method == "POST" and answer in {_KEEP, _DELETE}:
        name = connection.name
        with messages_for_errors(request):
            delete_connection(actor=actor, connection=connection, keep_documents=answer == _KEEP)
            messages.success(request, _("%s is no longer connected.") % name)
            return HttpResponseRedirect(reverse("admin:connectors_connection_changelist"))
    context = {
        **model_admin.admin_site.each_context(request),
        "title": _("Delete %s?") % connection.name,
        "connection": connection,
        "documents": visible_documents(actor).filter(source_id=connection.id).count(),
        "unanswered": request.method == "POST" and answer not in {_KEEP, _DELETE},
    }
    return TemplateResponse(request, "admin/connectors/connection/delete.html", context)
