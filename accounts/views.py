"""Pages of people: joining a tenant, founding one, switching between them."""

from __future__ import annotations

from typing import cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.models import User
from accounts.request import SESSION_INVITATION, SESSION_TENANT, memberships_of_request
from accounts.services import invitations
from accounts.services.tenants import found_tenant as create_tenant
from config.errors import AppError, NotFoundError


class TenantForm(forms.Form):
    """The name of a new tenant."""

    name = forms.CharField(
        max_length=200,
        label=_("Name"),
        help_text=_("Your organisation or team, as its members know it."),
        widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "organization"}),
    )


@require_http_methods(["GET", "POST"])
def accept_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind an invitation link. Joining takes a click, so that a preview of the mail joins nobody."""
    try:
        invitation = invitations.find_invitation(token)
    except NotFoundError as error:
        return render(
            request, "accounts/invitation_invalid.html", {"message": error.message}, status=404
        )
    context = {"invitation": invitation, "token": token, "error": ""}
    if not isinstance(request.user, User):
        request.session[SESSION_INVITATION] = token
        return render(request, "accounts/invitation.html", context)
    context["is_addressee"] = request.user.email.lower() == invitation.email
    if request.method != "POST":
        return render(request, "accounts/invitation.html", context)
    try:
        membership = invitations.accept_invitation(invitation=invitation, user=request.user)
    except AppError as error:
        context["error"] = error.message
        return render(request, "accounts/invitation.html", context, status=error.http_status)
    request.session.pop(SESSION_INVITATION, None)
    request.session[SESSION_TENANT] = str(membership.tenant_id)
    messages.success(
        request, gettext("Welcome to %(tenant)s.") % {"tenant": invitation.tenant.name}
    )
    return redirect("admin:index")


@login_required
@require_http_methods(["GET", "POST"])
def found_tenant(request: HttpRequest) -> HttpResponse:
    """Founds a tenant where the operator allows it; elsewhere says whom to ask."""
    user = cast(User, request.user)
    may_found = settings.SIGNUP_OPEN or user.is_superuser
    form = TenantForm(request.POST or None)
    if request.method == "POST" and not may_found:
        return render(request, "accounts/found_tenant.html", {"may_found": False}, status=403)
    if request.method == "POST" and form.is_valid():
        tenant = create_tenant(name=form.cleaned_data["name"], owner=user)
        request.session[SESSION_TENANT] = str(tenant.id)
        return redirect("admin:index")
    return render(request, "accounts/found_tenant.html", {"form": form, "may_found": may_found})


@login_required
@require_POST
def switch_tenant(request: HttpRequest) -> HttpResponse:
    """Act in another of one's tenants from now on."""
    wanted = request.POST.get("tenant", "")
    if all(str(membership.tenant_id) != wanted for membership in memberships_of_request(request)):
        return render(request, "404.html", status=404)
    request.session[SESSION_TENANT] = wanted
    return redirect("admin:index")
