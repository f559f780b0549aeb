"""Admin forms that write through a service, and what becomes of a service's refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.access import Actor
from config.errors import AppError, InvalidInputError


def add_app_error(form: forms.BaseForm, error: AppError) -> None:
    """Show a refusal at the fields it names, or above the form."""
    faults = error.errors if isinstance(error, InvalidInputError) else ()
    named = [fault for fault in faults if fault.field in form.fields]
    for fault in named:
        form.add_error(fault.field, fault.message)
    if not named:
        form.add_error(None, error.message)


@contextmanager
def messages_for_errors(request: HttpRequest) -> Iterator[None]:
    """Undo what a refused service call has begun, and tell the person why it was refused."""
    try:
        with transaction.atomic():
            yield
    except AppError as error:
        messages.error(request, error.message)


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A model form whose valid values go to a service; a refusal shows like any other form error.

    The service is part of validation, because only it knows whether the values are acceptable. It
    runs once, after every field is clean, in a savepoint. The admin's own saving is switched off
    (`ServiceAdmin.save_model`).
    """

    actor: Actor  # set by the admin for each request

    def _post_clean(self) -> None:
        if self.errors:
            return
        try:
            with transaction.atomic():
                self.instance = self.write(self.cleaned_data)
        except AppError as error:
            add_app_error(self, error)

    def write(self, values: dict[str, Any]) -> Any:
        """Call the service; returns the row as written."""
        raise NotImplementedError


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": 3}))
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        """One a line."""
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        """Blank lines and surrounding spaces do not count."""
        text = super().clean(value)
        return [line.strip() for line in text.splitlines() if line.strip()]

    def has_changed(self, initial: Sequence[str] | None, data: Any) -> bool:
        """Compared as the text shown."""
        return super().has_changed(self.prepare_value(initial), data)
