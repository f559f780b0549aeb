"""The form of a connection: for every connector the same frame around the fields it declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.db import transaction
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from accounts.access import Actor
from config.errors import AppError, FieldError, InvalidInputError
from connectors.admin.credentials import CredentialsPart
from connectors.admin.forms import form_fields, values_of
from connectors.admin.schedule_fields import schedule_fields, schedule_of
from connectors.base import AuthMethod, Capability, Connector
from connectors.models import Connection
from connectors.services.connections import create_connection, update_connection
from connectors.services.opening import parse_config
from connectors.services.schedules import default_schedule
from knowledge.access import visible_knowledge_bases
from knowledge.admin.document_actions import BaseChoiceField
from knowledge.admin.service_forms import LinesField
from knowledge.models import KnowledgeBase

_PLAIN = ("name", "access", "principals", "deletion_guard_percent", "keeps_capture")
_SCHEDULES = ("schedule", "full_schedule")


@dataclass(frozen=True, slots=True)
class AuthSection:
    """One way to authenticate, as the page shows it."""

    method: AuthMethod
    fields: list[BoundField]
    signs_in: bool  # a person signs in at the source after saving
    has_client: bool  # the installation has an OAuth client for it


class ConnectionForm(forms.Form):
    """Makes or changes one connection, by the services."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=200, widget=UnfoldAdminTextInputWidget()
    )
    knowledge_base = BaseChoiceField(
        help_text=gettext_lazy("Where the documents go. It cannot be changed later.")
    )
    auth_method = forms.ChoiceField(
        label=gettext_lazy("How to authenticate"),
        widget=UnfoldAdminSelectWidget(attrs={"data-switch": "auth_method"}),
    )
    access = forms.ChoiceField(
        label=gettext_lazy("Who may find the documents"),
        choices=Connection.Access.choices,
        widget=UnfoldAdminSelectWidget(attrs={"data-switch": "access"}),
        help_text=gettext_lazy(
            "As the source says: each document is found by those who may read it there."
        ),
    )
    principals = LinesField(
        label=gettext_lazy("Those who may find them"),
        required=False,
        help_text=gettext_lazy(
            "One a line: public (everyone who may use the base), user:mail@example.com or group:name. A "
            "change holds for all documents after the next sync of everything."
        ),
    )
    deletion_guard_percent = forms.IntegerField(
        label=gettext_lazy("Most documents that may go at once, in percent"),
        widget=UnfoldAdminIntegerFieldWidget(attrs={"min": "1", "max": "100"}),
        help_text=gettext_lazy(
            "When more than this share of the documents is suddenly gone at the source, none of them is "
            "deleted until a person agrees: perhaps a folder was only moved or access was lost."
        ),
    )
    keeps_capture = forms.BooleanField(
        label=gettext_lazy("Keep what the source sent"),
        required=False,
        widget=UnfoldBooleanWidget(),
        help_text=gettext_lazy(
            "Then everything can be indexed again without asking the source. It takes as much space as "
            "the documents."
        ),
    )

    def __init__(
        self, data: Any, *, actor: Actor, connector: type[Connector[Any]], connection: Any = None
    ) -> None:
        self.actor, self.connector, self.spec = actor, connector, connector.spec
        self.connection: Connection | None = connection
        row = connection or _unsaved(self.spec.kind)
        super().__init__(data, initial={name: getattr(row, name) for name in _PLAIN})
        self.credentials = CredentialsPart(self.spec, connection)
        self._set_base()
        self.fields["auth_method"].choices = [(m.name, m.label) for m in self.spec.auth]  # type: ignore[attr-defined]
        self.initial["auth_method"] = connection.auth_method if connection else None
        self.fields |= form_fields(self.spec.config, "config", stored=row.config)
        self.fields |= self.credentials.fields()
        self._add_schedules(row)
        if connection is None:
            self.initial["name"] = self.spec.name

    def clean(self) -> dict[str, Any]:
        """What the chosen way to authenticate needs must be there, or be stored already."""
        chosen = self.cleaned_data.get("auth_method")
        if chosen:
            for field in self.credentials.missing(chosen, self.cleaned_data):
                self.add_error(field, _("This field is required."))
        return self.cleaned_data

    def save(self) -> Connection | None:
        """The connection as written; None when the service refused, and the form says why."""
        try:
            with transaction.atomic():
                return self._update() if self.connection else self._create()
        except AppError as error:
            self._add_app_error(error)
            return None

    def config_fields(self) -> list[BoundField]:
        """The fields of the connector's configuration."""
        return [self[name] for name in self.fields if name.startswith("config.")]

    def schedules(self) -> list[tuple[str, list[BoundField]]]:
        """Each schedule with its fields: the kind, the minutes, the times and their zone."""
        parts = ("", ".minutes", ".cron", ".time_zone")
        return [(name, [self[name + part] for part in parts]) for name in _SCHEDULES]

    def auth_sections(self) -> list[AuthSection]:
        """Every way to authenticate with its fields."""
        return [
            AuthSection(
                method=method,
                fields=[self[name] for name in self.credentials.names(method)],
                signs_in=bool(method.oauth and not method.oauth.client_credentials),
                has_client=self.spec.kind in settings.GROUNDWORK_OAUTH_CLIENTS,
            )
            for method in self.spec.auth
        ]

    @property
    def keeps_permissions(self) -> bool:
        """Whether the source can say who may read."""
        return Capability.ACCESS_CONTROL in self.connector.capabilities()

    def _set_base(self) -> None:
        bases = visible_knowledge_bases(self.actor).filter(status=KnowledgeBase.Status.ACTIVE)
        self.fields["knowledge_base"].queryset = bases.order_by("name")  # type: ignore[attr-defined]
        first = list(bases[:2])
        self.initial["knowledge_base"] = first[0] if len(first) == 1 else None
        if self.connection is not None:
            del self.fields["knowledge_base"]

    def _add_schedules(self, row: Connection) -> None:
        minutes = self.spec.sync_every_minutes or 60
        changes = row.schedule if self.connection else default_schedule(self.spec)
        self.fields |= schedule_fields(
            "schedule", _("Look for changes"), "", changes, minutes=minutes
        )
        self.fields |= schedule_fields(
            "full_schedule",
            _("Compare everything"),
            _("Reads the whole source again, which also finds what a list of changes has missed."),
            row.full_schedule,
            minutes=60 * 24 * 7,
        )

    def _values(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        return {
            **{name: cleaned[name] for name in _PLAIN},
            **{name: schedule_of(name, cleaned) for name in _SCHEDULES},
            "auth_method": cleaned["auth_method"],
            "config": values_of(self.spec.config, "config", cleaned),
        }

    def _create(self) -> Connection:
        cleaned, values = self.cleaned_data, self._values()
        if credentials := self.credentials.entered(cleaned["auth_method"], cleaned):
            values["credentials"] = credentials
        return create_connection(
            actor=self.actor, base=cleaned["knowledge_base"], connector=self.spec.kind, **values
        )

    def _update(self) -> Connection:
        """Only what differs: a new configuration makes the next run compare everything."""
        connection = self.connection
        assert connection is not None  # noqa: S101 - for the type checker
        values = self._values()
        values["config"] = parse_config(self.spec, values["config"]).model_dump(mode="json")
        changed = {
            name: value for name, value in values.items() if getattr(connection, name) != value
        }
        credentials = self.credentials.changed(values["auth_method"], self.cleaned_data)
        if credentials is not None:
            changed["credentials"] = credentials
        if not changed:
            return connection
        return update_connection(actor=self.actor, connection=connection, **changed)

    def _add_app_error(self, error: AppError) -> None:
        faults = error.errors if isinstance(error, InvalidInputError) else ()
        if not faults:
            self.add_error(None, error.message)
        for fault in faults:
            place = self._place(fault)
            self.add_error(place, fault.message if place else f"{fault.field}: {fault.message}")

    def _place(self, fault: FieldError) -> str | None:
        """The form's field for a fault: `config.include.0` lies in `config.include`."""
        name = fault.field
        if name.startswith("credentials."):
            method = self.cleaned_data["auth_method"]
            name = f"credentials.{method}.{name.removeprefix('credentials.')}"
        while name and name not in self.fields:
            name = name.rpartition(".")[0]
        return name or None


def _unsaved(kind: str) -> Connection:
    return Connection(connector=kind)
