"""Pages between Groundwork and a source: the sign-in of a connection."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.request import get_actor
from accounts.services.audit import record_denial
from accounts.tenancy import tenant_scope
from config.errors import AppError, ForbiddenError, NotFoundError
from connectors.access import access_connection
from connectors.models import Connection
from connectors.services.oauth_sign_in import SignInRefusedError, begin_sign_in, finish_sign_in


@never_cache
@login_required
@require_GET
def oauth_start(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Send the person to the source. A link, not a form: the Content-Security-Policy lets forms lead nowhere
    else, and nothing is changed but the person's own session."""
    connection = _connection(request, pk)
    try:
        address = begin_sign_in(
            actor=get_actor(request), connection=connection, session=request.session
        )
    except AppError as error:
        return _back(request, connection.id, error.message)
    return HttpResponseRedirect(address)


@never_cache
@login_required
@require_GET
def oauth_callback(request: HttpRequest) -> HttpResponse:
    """Where the source sends the person back to."""
    answer = {name: str(value) for name, value in request.GET.items()}
    try:
        connection = finish_sign_in(
            actor=get_actor(request), session=request.session, answer=answer
        )
    except SignInRefusedError as error:
        return _back(request, error.connection_id, error.message)
    except AppError as error:
        context = {"message": error.message}
        status = error.http_status
        return render(request, "connectors/sign_in_failed.html", context, status=status)
    messages.success(request, gettext("The source has given access."))
    return redirect("admin:connectors_connection_change", connection.id)


def _connection(request: HttpRequest, pk: UUID) -> Connection:
    actor = get_actor(request)
    try:
        with tenant_scope(actor.tenant_id):
            return access_connection(actor, pk)
    except NotFoundError as error:
        raise Http404(error.message) from error
    except ForbiddenError as error:
        record_denial(actor, "connection.sign_in", target=request.path_info)
        raise PermissionDenied(error.message) from error


def _back(request: HttpRequest, connection_id: UUID, message: str) -> HttpResponse:
    messages.error(request, message)
    return redirect("admin:connectors_connection_change", connection_id)
