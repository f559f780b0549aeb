"""The part of the form that takes credentials: written, and never shown again where they are secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape
from django.utils.translation import gettext as _

from config.secrets import SealedError
from connectors.admin.forms import form_fields, is_secret, values_of
from connectors.base import AuthMethod, ConnectorSpec
from connectors.models import Connection

# What a sign-in gives; a person enters only the client.
_TOKENS = frozenset({"access_token", "refresh_token", "expires_at"})


class CredentialsPart:
    """The fields of every way to authenticate, named `credentials.method.field`."""

    def __init__(self, spec: ConnectorSpec, connection: Connection | None) -> None:
        self._spec = spec
        self._method = connection.auth_method if connection else ""
        self._stored = stored_credentials(connection) if connection else {}

    def fields(self) -> dict[str, forms.Field]:
        """All of them. None is required by itself: which ones are depends on the way that is chosen."""
        found: dict[str, forms.Field] = {}
        for method in self._spec.auth:
            found |= form_fields(
                method.credentials,
                f"credentials.{method.name}",
                stored=self._stored_of(method.name),
                leave_out=_TOKENS if method.oauth else (),
                may_be_empty=True,
            )
            if method.oauth:
                self._explain_client(found, method)
        return found

    def names(self, method: AuthMethod) -> list[str]:
        """The form's names of a method's fields."""
        return [f"credentials.{method.name}.{name}" for name in _asked(method)]

    def missing(self, chosen: str, cleaned: Mapping[str, Any]) -> list[str]:
        """Fields of the chosen method that are needed, empty, and not stored."""
        method = self._spec.method(chosen)
        stored = self._stored_of(chosen)
        model = method.credentials.model_fields
        needed = [name for name in _asked(method) if model[name].is_required()]
        if method.oauth and self._spec.kind not in settings.GROUNDWORK_OAUTH_CLIENTS:
            needed.append("client_id")
        secrets = {name for name in needed if is_secret(model[name])}
        return [
            f"credentials.{chosen}.{name}"
            for name in needed
            if not cleaned.get(f"credentials.{chosen}.{name}")
            and not (name in secrets and stored.get(name))
        ]

    def entered(self, chosen: str, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        """What was typed for the chosen method, empty fields left out."""
        method = self._spec.method(chosen)
        values = values_of(method.credentials, f"credentials.{chosen}", cleaned, _asked(method))
        return {name: value for name, value in values.items() if value != ""}

    def changed(self, chosen: str, cleaned: Mapping[str, Any]) -> dict[str, Any] | None:
        """The credentials to store, or None when they stay as they are. An empty secret is unchanged."""
        method, entered = self._spec.method(chosen), self.entered(chosen, cleaned)
        if chosen != self._method:
            return entered
        model = method.credentials.model_fields
        kept = {
            name: value
            for name, value in _filled(self._stored).items()
            if name in _TOKENS or (name in model and is_secret(model[name]))
        }
        merged = {**kept, **entered}
        if method.oauth and merged.get("client_id", "") != self._stored.get("client_id", ""):
            # Tokens, and the old secret, belong to the client that they were given to.
            left = _TOKENS | ({"client_secret"} - entered.keys())
            merged = {name: value for name, value in merged.items() if name not in left}
        has_new_secret = any(is_secret(model[name]) for name in entered)
        return merged if has_new_secret or merged != _filled(self._stored) else None

    def _stored_of(self, method: str) -> dict[str, Any]:
        return self._stored if method == self._method else {}

    def _explain_client(self, fields: dict[str, forms.Field], method: AuthMethod) -> None:
        if self._spec.kind in settings.GROUNDWORK_OAUTH_CLIENTS:
            text = _("Empty: the client of this installation is used.")
        else:
            text = _("Register an application at the source; it gives you an id and a secret.")
        if not (method.oauth and method.oauth.client_credentials) and (address := _sign_in_ends()):
            text += " " + _("The redirect address of your own client is %s") % address
        labels = {"client_id": _("Client id"), "client_secret": _("Client secret")}
        for name, label in labels.items():
            fields[f"credentials.{method.name}.{name}"].label = label
        fields[f"credentials.{method.name}.client_id"].help_text = escape(text)


def stored_credentials(connection: Connection) -> dict[str, Any]:
    """The open credentials; none when the key that sealed them is gone."""
    try:
        return connection.credentials
    except SealedError:
        return {}


def _sign_in_ends() -> str:
    """Where a source sends people back to; people enter it there."""
    try:
        return f"{settings.GROUNDWORK_URL}{reverse('connectors_oauth_callback')}"
    except NoReverseMatch:
        return ""


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in {"", None}}


def _asked(method: AuthMethod) -> list[str]:
    names = list(method.credentials.model_fields)
    return [name for name in names if not (method.oauth and name in _TOKENS)]
