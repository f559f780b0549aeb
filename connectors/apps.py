"""The application of sources."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    """Connectors, connections, syncs."""

    name = "connectors"

    def ready(self) -> None:
        """Register the system checks."""
        from connectors import checks  # noqa: F401, PLC0415 - models are ready now
