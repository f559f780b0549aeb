"""The app of outside and local model services."""

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    """Embedding models; has no tables."""

    name = "providers"
    default_auto_field = "django.db.models.BigAutoField"
