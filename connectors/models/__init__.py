"""The tables of the sources: connections, their runs, the items seen, who is in which group."""

from connectors.models.connection import Connection
from connectors.models.group_membership import GroupMembership
from connectors.models.sync_item import SyncItem
from connectors.models.sync_run import SyncRun

__all__ = ["Connection", "GroupMembership", "SyncItem", "SyncRun"]
