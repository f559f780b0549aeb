"""The base of admin pages whose changes go through services."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.db.models import Model
from django.http import HttpRequest

from accounts.access import Action
from accounts.admin_base import TenantAdmin
from accounts.request import get_actor


class ServiceAdmin(TenantAdmin):
    """Saving is done by the form's service (see `ServiceForm`); deleting by the subclass's."""

    add_action: ClassVar[Action | None] = Action.WRITE
    change_action: ClassVar[Action | None] = Action.WRITE
    delete_action: ClassVar[Action | None] = Action.WRITE
    show_full_result_count = False

    class Media:
        css = {"all": ["css/knowledge.css"]}

    def get_form(
        self, request: HttpRequest, obj: Any = None, **kwargs: Any
    ) -> type[forms.ModelForm]:  # type: ignore[type-arg]
        """The form, knowing who asks."""
        form: Any = super().get_form(request, obj, **kwargs)
        form.actor = get_actor(request)
        return form  # type: ignore[no-any-return]

    def save_model(self, request: HttpRequest, obj: Model, form: Any, change: Any) -> None:
        """The form's service has written it."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        """Nothing is related that a form here could change."""
