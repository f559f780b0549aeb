"""The application of sources."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    """Connectors, connections, syncs."""

    name = "connectors"
