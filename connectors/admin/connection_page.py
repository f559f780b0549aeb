"""The page of one connection: how it is doing, and everything that can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import Actor
from accounts.request import get_actor
from config.errors import AppError, ConflictError
from connectors.access import access_connection
from connectors.admin.connect import PAGE
from connectors.admin.gallery import capability_words
from connectors.admin.health import (
    health_of,
    needs_sign_in,
    render_health,
    run_context,
    sign_in_url,
)
from connectors.admin.schedule_fields import schedule_text
from connectors.admin.specs import can_browse, find_connector
from connectors.models import Connection, SyncRun
from connectors.services.connections import (
    check_connection,
    pause_connection,
    resume_connection,
)
from connectors.services.deletions import approve_deletions
from connectors.services.runs import cancel_run, start_run
from knowledge.admin.service_forms import messages_for_errors

_SHOWN_RUNS = 10
_SHOWN_FAILED = 5


def connection_view(
    model_admin: ModelAdmin[Any], request: HttpRequest, pk: UUID | str
) -> HttpResponse:
    """The page."""
    actor = get_actor(request)
    connection = access_connection(actor, pk)
    connector = find_connector(connection.connector)
    health = health_of(actor, connection)
    runs = connection.runs.order_by("-created_at", "-id")[:_SHOWN_RUNS]
    context = {
        **model_admin.admin_site.each_context(request),
        **run_context(health.run),
        "title": connection.name,
        "media": model_admin.media,
        "connection": connection,
        "spec": connector.spec if connector else None,
        "is_asked": connector is not None and connector.spec.sync_every_minutes > 0,
        "capabilities": capability_words(connection.connector),
        "health": health,
        "is_active": connection.status == Connection.Status.ACTIVE,
        "schedule": schedule_text(connection.schedule),
        "full_schedule": schedule_text(connection.full_schedule),
        "runs": [run_context(run) for run in runs],
        "failed_items": connection.items.filter(status="failed")[:_SHOWN_FAILED],
        "needs_sign_in": needs_sign_in(connection),
        "sign_in_url": sign_in_url(connection),
        "can_browse": can_browse(connection),
    }
    return TemplateResponse(request, "admin/connectors/connection/page.html", context)


def state_view(request: HttpRequest, pk: UUID) -> JsonResponse:
    """The part of the page that changes by itself."""
    actor = get_actor(request)
    health = health_of(actor, access_connection(actor, pk))
    return JsonResponse({"changing": health.is_changing, "html": render_health(health)})


def check_view(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Try the source now. A failure is an answer too: the transaction stays, because tokens may have been
    renewed in it, which works once only."""
    actor = get_actor(request)
    connection = access_connection(actor, pk)
    try:
        reached, text = True, _("Reached %s") % check_connection(actor=actor, connection=connection)
    except AppError as error:
        reached, text = False, error.message
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"reached": reached, "message": text})
    (messages.success if reached else messages.error)(request, text)
    return HttpResponseRedirect(reverse(PAGE, args=[connection.id]))


def act_view(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Do what the pressed button says."""
    actor = get_actor(request)
    connection = access_connection(actor, pk)
    act = _ACTS.get(request.POST.get("do", ""))
    if act is None:
        raise Http404
    with messages_for_errors(request):
        messages.success(request, act(actor, connection))
    return HttpResponseRedirect(reverse(PAGE, args=[connection.id]))


def _starter(kind: SyncRun.Kind) -> Callable[[Actor, Connection], str]:
    def start(actor: Actor, connection: Connection) -> str:
        start_run(actor=actor, connection=connection, kind=kind)
        return _("The sync has been started.")

    return start


def _cancel(actor: Actor, connection: Connection) -> str:
    run = connection.runs.filter(status__in=SyncRun.UNFINISHED).first()
    if run is None:
        raise ConflictError(_("No sync is going on."))
    cancel_run(actor=actor, run=run)
    return _("The sync ends within seconds. What it has stored stays.")


def _pause(actor: Actor, connection: Connection) -> str:
    pause_connection(actor=actor, connection=connection)
    return _("Paused. No sync begins until you resume it.")


def _resume(actor: Actor, connection: Connection) -> str:
    resume_connection(actor=actor, connection=connection)
    return _("Resumed.")


def _approve(actor: Actor, connection: Connection) -> str:
    count = approve_deletions(actor=actor, connection=connection)
    return ngettext(
        "%(n)d document was deleted.", "%(n)d documents were deleted.", count
    ) % {"n": count}  # fmt: skip


_ACTS: Mapping[str, Callable[[Actor, Connection], str]] = {
    "sync": _starter(SyncRun.Kind.INCREMENTAL),
    "full": _starter(SyncRun.Kind.FULL),
    "replay": _starter(SyncRun.Kind.REPLAY),
    "retry": _starter(SyncRun.Kind.RETRY),
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "approve": _approve,
}
