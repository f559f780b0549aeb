"""Django form fields for the pydantic models that connectors declare.

The fields only carry values: what is acceptable, pydantic says in the services, and its faults come back to
the field by name. A field is called like the fault: `config.path`.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from django import forms
from django.utils.html import escape
from django.utils.translation import gettext as _
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from connectors.base import Settings
from knowledge.admin.service_forms import LinesField

_LISTS = (list, tuple, set, frozenset)
# Texts of several lines, as keys in PEM are; a line field would join them.
_LONG_NAMES = ("private_key", "certificate", "service_account")


class PairsField(LinesField):
    """Names with values, one a line: `Accept-Language: de`."""

    def prepare_value(self, value: Any) -> Any:
        """One a line."""
        if isinstance(value, Mapping):
            return "\n".join(f"{name}: {text}" for name, text in value.items())
        return value

    def clean(self, value: Any) -> Any:
        """The pairs; a line without a colon is a fault."""
        pairs = {}
        for line in super().clean(value):
            name, sign, text = line.partition(":")
            if not sign:
                raise forms.ValidationError(
                    _("%(line)s: write a name, a colon and a value.") % {"line": line}
                )
            pairs[name.strip()] = text.strip()
        return pairs


class SecretField(forms.CharField):
    """Something that is written but never shown again."""

    def __init__(self, *, multiline: bool = False, **kwargs: Any) -> None:
        attrs = {"autocomplete": "new-password", "spellcheck": "false"}
        kwargs["widget"] = (
            _BlankTextarea(attrs={**attrs, "rows": 4})
            if multiline
            else UnfoldAdminPasswordWidget(attrs=attrs, render_value=False)
        )
        super().__init__(**kwargs)

    def clean(self, value: Any) -> Any:
        """Browsers send line ends as CRLF."""
        text: str = super().clean(value)
        return text.replace("\r\n", "\n")


class _BlankTextarea(UnfoldAdminTextareaWidget):  # type: ignore[misc]
    """A text area that does not show its value, for keys of several lines."""

    def get_context(self, name: str, value: Any, attrs: Any) -> Any:
        """Whatever was typed or stored is left out."""
        del value
        return super().get_context(name, None, attrs)


def form_fields(
    model: type[Settings],
    place: str,
    *,
    stored: Mapping[str, Any],
    leave_out: Collection[str] = (),
    may_be_empty: bool = False,
) -> dict[str, forms.Field]:
    """A form field for each field of the model, named `place.field`, showing what is stored but no secret.
    With `may_be_empty` none is required by the form."""
    fields = {}
    for name, info in model.model_fields.items():
        if name in leave_out:
            continue
        field = _field(name, info, required=info.is_required() and not may_be_empty)
        if not isinstance(field, SecretField):
            field.initial = stored.get(name, _default(info))
        elif stored.get(name):
            field.help_text = (
                f"{field.help_text} {escape(_('Empty: what is stored stays.'))}".strip()
            )
        fields[f"{place}.{name}"] = field
    return fields


def values_of(
    model: type[Settings],
    place: str,
    cleaned: Mapping[str, Any],
    names: Collection[str] | None = None,
) -> dict[str, Any]:
    """What was entered, for the model to judge. What was left empty has the model's default, except texts
    and lists, which may be meant to be empty."""
    values = {}
    for name, info in model.model_fields.items():
        if names is not None and name not in names:
            continue
        value = cleaned.get(f"{place}.{name}")
        if value is None or (value == "" and not _is_plain_text(info)):
            continue
        if value == "" and info.is_required():
            continue
        values[name] = value
    return values


def is_secret(info: FieldInfo) -> bool:
    """Whether a value must never be shown."""
    return _without_none(info.annotation) is SecretStr


def _field(name: str, info: FieldInfo, *, required: bool) -> forms.Field:
    options: dict[str, Any] = {
        "label": info.title or name.replace("_", " ").capitalize(),
        "help_text": escape(info.description or ""),
        "required": required,
    }
    kind = _without_none(info.annotation)
    if kind is bool:
        return forms.BooleanField(**{**options, "required": False}, widget=UnfoldBooleanWidget())
    if kind is SecretStr:
        return SecretField(multiline=_is_long(name, info), **options)
    if choices := _choices(kind):
        return _choice(choices, info, options)
    if get_origin(kind) in _LISTS or kind in _LISTS:
        inner = _choices(_without_none(next(iter(get_args(kind)), str)))
        return _many(inner, options) if inner else LinesField(**options)
    if get_origin(kind) is dict and get_args(kind) == (str, str):
        return PairsField(**options)
    return _simple(kind, info, options, multiline=_is_long(name, info))


def _simple(kind: Any, info: FieldInfo, options: dict[str, Any], *, multiline: bool) -> forms.Field:
    attrs = {"placeholder": str(info.examples[0])} if info.examples else {}
    if kind is int:
        return forms.IntegerField(**options, widget=UnfoldAdminIntegerFieldWidget(attrs=attrs))
    if kind is float:
        return forms.FloatField(**options, widget=UnfoldAdminDecimalFieldWidget(attrs=attrs))
    if _is_structure(kind):
        return forms.JSONField(
            **options, widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"})
        )
    if multiline:
        return forms.CharField(
            **options, widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, **attrs})
        )
    if kind is date:
        attrs["type"] = "date"
    return forms.CharField(**options, widget=UnfoldAdminTextInputWidget(attrs=attrs))


def _choice(
    choices: dict[str, Any], info: FieldInfo, options: dict[str, Any]
) -> forms.TypedChoiceField:
    shown = [(text, _words(text)) for text in choices]
    if not options["required"] and _default(info) in {None, ""} and "" not in choices:
        shown.insert(0, ("", "–"))
    return forms.TypedChoiceField(
        **options,
        choices=shown,
        coerce=_lookup(choices),
        empty_value=None,
        widget=UnfoldAdminSelectWidget(),
    )


def _many(choices: dict[str, Any], options: dict[str, Any]) -> forms.TypedMultipleChoiceField:
    return forms.TypedMultipleChoiceField(
        **options,
        choices=[(text, _words(text)) for text in choices],
        coerce=_lookup(choices),
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
    )


def _lookup(choices: dict[str, Any]) -> Callable[[str], Any]:
    return lambda text: choices[text]


def _choices(kind: Any) -> dict[str, Any]:
    """The values of a `Literal` or an enumeration by what the form sends."""
    if get_origin(kind) is Literal:
        return {str(value): value for value in get_args(kind)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {str(member.value): member.value for member in kind}
    return {}


def _words(text: str) -> str:
    return text.replace("_", " ").capitalize() or "–"


def _default(info: FieldInfo) -> Any:
    found = info.get_default(call_default_factory=True, validated_data={})
    if found is PydanticUndefined:
        return None
    if isinstance(found, Enum):
        return found.value
    if isinstance(found, SecretStr):
        return None
    return json.loads(json.dumps(found, default=_as_json))


def _as_json(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _without_none(kind: Any) -> Any:
    """The one type that a value has when there is one."""
    if get_origin(kind) is Annotated:
        return _without_none(get_args(kind)[0])
    if get_origin(kind) in {Union, types.UnionType}:
        kinds = [one for one in get_args(kind) if one is not type(None)]
        return _without_none(kinds[0]) if len(kinds) == 1 else str
    return kind


def _is_plain_text(info: FieldInfo) -> bool:
    """Whether an empty text is a value: not where it would mean `None`."""
    return info.annotation is str or info.annotation is SecretStr


def _is_structure(kind: Any) -> bool:
    is_model = isinstance(kind, type) and issubclass(kind, Settings)
    return is_model or kind is dict or get_origin(kind) is dict


def _is_long(name: str, info: FieldInfo) -> bool:
    """Whether a text has several lines: its author says `json_schema_extra={"multiline": True}`, or it is
    called so."""
    extra = info.json_schema_extra
    is_said = isinstance(extra, Mapping) and bool(extra.get("multiline"))
    return is_said or any(part in name for part in _LONG_NAMES)
