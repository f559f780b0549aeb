"""Chooses the tenant a person acts in, and runs the admin inside that tenant's scope."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse

from accounts.access import actor_for_member, as_uuid
from accounts.models import Membership, User
from accounts.request import SESSION_TENANT, find_actor, find_membership
from accounts.services.audit import record_denial
from accounts.services.tenants import memberships_of
from accounts.tenancy import tenant_scope
from config.errors import AppError, ForbiddenError, InvalidInputError, NotFoundError

_WITHOUT_TENANT = ("admin:login", "admin:logout", "admin:jsi18n")


class _RollBack(Exception):  # noqa: N818 - a way out of the transaction, not an error
    def __init__(self, response: HttpResponse) -> None:
        self.response = response


class TenantMiddleware:
    """Sets `request.memberships`, `.membership` and `.actor` (read them through `accounts.request`).

    Everything under the admin runs in one transaction in the tenant's scope, templates included. It is
    rolled back when the answer is an error. A streamed answer outlives the scope: collect its data first.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._admin = reverse("admin:index")
        self._without_tenant = {reverse(name) for name in _WITHOUT_TENANT}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request in the right scope."""
        _choose_membership(request)
        if not request.path_info.startswith(self._admin) or not request.user.is_authenticated:
            return self._get_response(request)
        if find_membership(request) is None:
            if request.path_info in self._without_tenant:
                return self._get_response(request)
            return redirect("found_tenant")
        return self._answer_in_scope(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Show an error of ours in the admin as a message on the page the person came from."""
        if not isinstance(error, AppError) or not request.path_info.startswith(self._admin):
            return None
        if isinstance(error, ForbiddenError):
            raise PermissionDenied(error.message) from error
        if isinstance(error, NotFoundError):
            raise Http404(error.message) from error
        faults = error.errors if isinstance(error, InvalidInputError) else ()
        if request.method != "POST" and request.path_info == self._admin:
            return None  # nowhere left to send the person
        messages.error(request, " ".join([error.message, *(fault.message for fault in faults)]))
        request.rolls_back = True  # type: ignore[attr-defined]
        return HttpResponseRedirect(
            request.get_full_path() if request.method == "POST" else self._admin
        )

    def _answer_in_scope(self, request: HttpRequest) -> HttpResponse:
        actor = find_actor(request)
        if actor is None:
            raise PermissionDenied
        try:
            with tenant_scope(actor.tenant_id):
                response = self._get_response(request)
                _require_success(request, response)
        except _RollBack as way_out:
            response = way_out.response
        if response.status_code == 403:
            record_denial(actor, f"admin.{request.method}", target=request.path_info)
        return response


def _require_success(request: HttpRequest, response: HttpResponse) -> None:
    if response.status_code >= 400 or getattr(request, "rolls_back", False):
        raise _RollBack(response)


def _choose_membership(request: HttpRequest) -> None:
    memberships = memberships_of(request.user) if isinstance(request.user, User) else []
    membership = None
    if memberships:
        wanted = as_uuid(request.session.get(SESSION_TENANT))
        membership = next((m for m in memberships if m.tenant_id == wanted), memberships[0])
    _put(request, memberships, membership)


def _put(
    request: HttpRequest, memberships: list[Membership], membership: Membership | None
) -> None:
    request.memberships = memberships  # type: ignore[attr-defined]
    request.membership = membership  # type: ignore[attr-defined]
    request.actor = actor_for_member(membership) if membership else None  # type: ignore[attr-defined]
