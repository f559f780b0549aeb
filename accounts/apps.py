"""Tenants, people, keys, audit."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Who may do what."""

    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make our Celery application the one that `shared_task` binds to. Not in `config/__init__.py`:
        the extraction worker imports `config.errors` and must start fast."""
        import accounts.api.schema  # noqa: F401, PLC0415 - describes our authentication in OpenAPI
        import config.celery  # noqa: F401, PLC0415
