"""The base of every admin page about tenant data."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.access import Action
from accounts.request import find_actor


class TenantAdmin(ModelAdmin):  # type: ignore[misc]
    """An admin page whose rights come from the person's role in their tenant.

    Declare the `Action` each verb needs; None closes the verb. Django's own model permissions and the
    superuser flag play no part. Rows are those of the tenant, because the middleware runs the admin in
    its scope. Write through services, with `actor=get_actor(request)` from `accounts.request`, in
    `save_model`, `delete_model` and `delete_queryset`; an `AppError` raised there rolls everything back
    and is shown as a message, and a denied page is recorded in the audit trail.

        class DocumentAdmin(TenantAdmin):
            view_action = Action.READ
            change_action = delete_action = Action.WRITE
    """

    view_action: ClassVar[Action | None] = Action.READ
    add_action: ClassVar[Action | None] = None
    change_action: ClassVar[Action | None] = None
    delete_action: ClassVar[Action | None] = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the menu shows this page."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be seen."""
        del obj
        return _may(request, self.view_action)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be made."""
        del obj
        return _may(request, self.add_action)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be changed."""
        del obj
        return _may(request, self.change_action)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be removed."""
        del obj
        return _may(request, self.delete_action)


class OperatorAdmin(ModelAdmin):  # type: ignore[misc]
    """An admin page about the whole installation, for superusers. Rows are changed, not made or removed."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the menu shows this page."""
        return _is_operator(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be seen."""
        del obj
        return _is_operator(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether rows may be changed."""
        del obj
        return _is_operator(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: tenants are founded and people sign up."""
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        del request, obj
        return False


def _may(request: HttpRequest, action: Action | None) -> bool:
    actor = find_actor(request)
    return actor is not None and action is not None and actor.may(action)


def _is_operator(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))
