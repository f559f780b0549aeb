"""The search service, its API and its test page."""

from __future__ import annotations

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """Finding evidence."""

    name = "search"
    default_auto_field = "django.db.models.BigAutoField"
