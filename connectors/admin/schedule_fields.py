"""A schedule as a person chooses it: not at all, every so many minutes, or at fixed times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

OFF, EVERY, CRON = "off", "every", "cron"
_CHOICES = [
    (EVERY, gettext_lazy("Every so many minutes")),
    (CRON, gettext_lazy("At fixed times (cron)")),
    (OFF, gettext_lazy("Only when started by hand")),
]
ZONES_ID = "time-zones"


def schedule_fields(
    name: str, label: str, help_text: str, schedule: Mapping[str, Any], *, minutes: int
) -> dict[str, forms.Field]:
    """The kind of schedule, named like the connection's field, and what each kind needs."""
    kind = EVERY if "every_minutes" in schedule else CRON if "cron" in schedule else OFF
    return {
        name: forms.ChoiceField(
            label=label,
            choices=_CHOICES,
            initial=kind,
            help_text=help_text,
            widget=UnfoldAdminSelectWidget(attrs={"data-switch": name}),
        ),
        f"{name}.minutes": forms.IntegerField(
            label=_("Minutes"),
            required=False,
            initial=schedule.get("every_minutes", minutes),
            widget=UnfoldAdminIntegerFieldWidget(attrs={"min": "1"}),
        ),
        f"{name}.cron": forms.CharField(
            label=_("Times"),
            required=False,
            initial=schedule.get("cron", "0 6 * * *"),
            help_text=_("Minute, hour, day, month and weekday: 0 6 * * 1-5 is six o’clock on working days."),
            widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false"}),
        ),
        f"{name}.time_zone": forms.CharField(
            label=_("Time zone"),
            required=False,
            initial=schedule.get("time_zone", "UTC"),
            widget=UnfoldAdminTextInputWidget(attrs={"list": ZONES_ID}),
        ),
    }  # fmt: skip


def schedule_of(name: str, cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule as the connection keeps it."""
    kind = cleaned.get(name)
    if kind == EVERY:
        return {"every_minutes": cleaned.get(f"{name}.minutes")}
    if kind == CRON:
        zone = cleaned.get(f"{name}.time_zone") or "UTC"
        return {"cron": cleaned.get(f"{name}.cron", ""), "time_zone": zone}
    return {}


def schedule_text(schedule: Mapping[str, Any]) -> str:
    """The schedule in words."""
    if minutes := schedule.get("every_minutes"):
        text = ngettext("every minute", "every %(n)d minutes", minutes)
        return text % {"n": minutes}
    if cron := schedule.get("cron"):
        return f"{cron} ({schedule.get('time_zone', 'UTC')})"
    return _("by hand")


def time_zones() -> SafeString:
    """What the browser offers for a time zone."""
    zones = sorted(zone for zone in available_timezones() if "/" in zone or zone == "UTC")
    options = "".join(f'<option value="{zone}">' for zone in zones)
    return format_html('<datalist id="{}">{}</datalist>', ZONES_ID, SafeString(options))
