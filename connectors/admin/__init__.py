"""The admin of sources: the gallery, connections, syncs. Whatever it changes goes through the services."""

from connectors.admin.connection import ConnectionAdmin
from connectors.admin.source_admin import may_keep_sources
from connectors.admin.sync_item import SyncItemAdmin
from connectors.admin.sync_run import SyncRunAdmin

__all__ = ["ConnectionAdmin", "SyncItemAdmin", "SyncRunAdmin", "may_keep_sources"]
