"""Admin pages of keys, members, invitations, the audit trail, and of the installation itself."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts import admin_webhooks  # noqa: F401 - registers its pages
from accounts.access import Action, get_tenant
from accounts.admin_base import OperatorAdmin, TenantAdmin
from accounts.models import ApiKey, AuditEvent, Invitation, Membership, Scope, Tenant, User
from accounts.request import get_actor
from accounts.services.api_keys import issue_key, revoke_key
from accounts.services.invitations import invite, withdraw_invitation
from accounts.services.tenants import change_role, remove_member

admin.site.unregister(Group)  # rights come from roles

_SCOPE_LABELS = (
    (Scope.SEARCH, _("Search")),
    (Scope.READ, _("Read documents and chunks")),
    (Scope.WRITE, _("Add, change and delete documents")),
    (Scope.ADMIN, _("Administer keys, members and settings; includes the others")),
    (Scope.PRINCIPALS, _("Say on whose behalf it searches")),
)


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new key."""

    scopes = forms.MultipleChoiceField(
        choices=_SCOPE_LABELS,
        initial=[Scope.SEARCH, Scope.READ],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "knowledge_base_ids", "expires_at")


@admin.register(ApiKey)
class ApiKeyAdmin(TenantAdmin):
    """Keys are issued and revoked; they are neither changed nor deleted."""

    view_action = add_action = Action.ADMIN
    form = ApiKeyForm
    list_display = (
        "name",
        "prefix",
        "shown_scopes",
        "state",
        "created_by",
        "last_used_at",
        "expires_at",
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "prefix")
    ordering = ("-created_at",)
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        """The form of a new key, or everything known about one."""
        if obj is None:
            return ("name", "scopes", "knowledge_base_ids", "expires_at")
        return (
            "name", "prefix", "shown_scopes", "knowledge_base_ids", "created_by", "created_at",
            "last_used_at", "expires_at", "revoked_at",
        )  # fmt: skip

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> tuple[str, ...]:
        """An issued key is only shown."""
        return () if obj is None else self.get_fields(request, obj)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: Any) -> None:
        """Issue the key; its text goes to the page that follows and nowhere else."""
        del form, change
        key, text = issue_key(
            actor=get_actor(request),
            name=obj.name,
            scopes=obj.scopes,
            knowledge_base_ids=obj.knowledge_base_ids or None,
            expires_at=obj.expires_at,
        )
        obj.id, obj.prefix, obj.tenant_id = key.id, key.prefix, key.tenant_id
        request.issued_key = text  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key once. Not through a message: those are kept in a cookie."""
        del post_url_continue
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Key issued"),
            "opts": self.opts,
            "api_key": obj,
            "text": getattr(request, "issued_key", ""),
        }
        return TemplateResponse(
            request,
            "admin/accounts/apikey/issued.html",
            context,
            headers={"Cache-Control": "no-store"},
        )

    @admin.action(description=_("Revoke selected keys"), permissions=["add"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """They stop working at once."""
        keys = list(queryset)
        for key in keys:
            revoke_key(actor=get_actor(request), key=key)
        count = len(keys)
        text = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", count) % {
            "count": count
        }
        messages.success(request, text)

    @admin.display(description=_("scopes"))
    def shown_scopes(self, key: ApiKey) -> str:
        """Comma-separated."""
        return ", ".join(key.scopes)

    @display(  # type: ignore[untyped-decorator]
        description=_("state"),
        label={"valid": "success", "revoked": "danger", "expired": "warning"},
    )
    def state(self, key: ApiKey) -> tuple[str, str]:
        """Whether it works."""
        if key.revoked_at:
            return "revoked", gettext("revoked")
        return ("valid", gettext("valid")) if key.is_valid() else ("expired", gettext("expired"))


@admin.register(Membership)
class MembershipAdmin(TenantAdmin):
    """People of the tenant. They come by invitation."""

    view_action = change_action = delete_action = Action.ADMIN
    list_display = ("user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("user__email",)
    fields = ("user", "role", "created_at")
    readonly_fields = ("user", "created_at")

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: Any) -> None:
        """Give another role."""
        del change
        if "role" in form.changed_data:
            wanted, obj.role = obj.role, form.initial["role"]
            change_role(actor=get_actor(request), membership=obj, role=wanted)

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        """End the membership."""
        remove_member(actor=get_actor(request), membership=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """End several memberships, or none."""
        for membership in queryset:
            self.delete_model(request, membership)


@admin.register(Invitation)
class InvitationAdmin(TenantAdmin):
    """People who may join. Adding one sends the mail; deleting one makes its link useless."""

    view_action = add_action = delete_action = Action.ADMIN
    list_display = ("email", "role", "created_at", "expires_at", "accepted_at")
    list_filter = (("accepted_at", admin.EmptyFieldListFilter),)
    search_fields = ("email",)
    ordering = ("-created_at",)
    actions = ("send_again",)

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> tuple[str, ...]:
        """Whom to invite, or what became of it."""
        if obj is None:
            return ("email", "role")
        return ("email", "role", "created_at", "expires_at", "accepted_at")

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: Any) -> None:
        """Invite."""
        del form, change
        self._invite(request, obj)

    def delete_model(self, request: HttpRequest, obj: Invitation) -> None:
        """Withdraw."""
        withdraw_invitation(actor=get_actor(request), invitation=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        """Withdraw several."""
        for invitation in queryset:
            self.delete_model(request, invitation)

    @admin.action(description=_("Send again, with a fresh link"), permissions=["add"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        """The older link stops working."""
        invitations = list(queryset.filter(accepted_at=None))
        for invitation in invitations:
            self._invite(request, invitation)
        count = len(invitations)
        text = ngettext("%(count)d invitation sent.", "%(count)d invitations sent.", count)
        messages.success(request, text % {"count": count})

    def _invite(self, request: HttpRequest, invitation: Invitation) -> None:
        actor = get_actor(request)
        sent = invite(
            actor=actor,
            email=invitation.email,
            role=invitation.role,
            tenant_name=get_tenant(actor).name,
        )
        invitation.id, invitation.tenant_id = sent.id, sent.tenant_id


@admin.register(AuditEvent)
class AuditEventAdmin(TenantAdmin):
    """What happened; only to be read."""

    view_action = Action.ADMIN
    list_display = ("created_at", "actor", "action", "target", "was_denied")
    list_filter = ("denied", "created_at")
    search_fields = ("actor", "action", "target")
    ordering = ("-created_at", "-id")
    show_full_result_count = False

    @display(  # type: ignore[untyped-decorator]
        description=_("outcome"), label={"denied": "danger", "done": "success"}
    )
    def was_denied(self, event: AuditEvent) -> tuple[str, str]:
        """Done or denied."""
        return ("denied", gettext("denied")) if event.denied else ("done", gettext("done"))


@admin.register(Tenant)
class TenantRecordAdmin(OperatorAdmin):
    """Every tenant of the installation."""

    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    fields = ("name", "slug", "created_at")
    readonly_fields = ("slug", "created_at")


@admin.register(User)
class UserAdmin(OperatorAdmin):
    """Everyone with an account. Passwords are reset by mail, never here."""

    list_display = ("email", "first_name", "last_name", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("email", "first_name", "last_name")
    ordering = ("email",)
    fields = (
        "email",
        "first_name",
        "last_name",
        "is_active",
        "is_superuser",
        "last_login",
        "date_joined",
    )
    readonly_fields = ("email", "last_login", "date_joined")
