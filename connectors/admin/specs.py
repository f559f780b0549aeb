"""Connectors looked up so that one that is broken or gone does not take its pages along."""

from __future__ import annotations

import logging
from typing import Any

from config.errors import AppError
from connectors.base import AuthMethod, Capability, Connector
from connectors.models import Connection
from connectors.registry import connector_class

logger = logging.getLogger(__name__)


def find_connector(kind: str) -> type[Connector[Any]] | None:
    """The class of a kind, or None when this installation cannot offer it: its manifest is wrong, or a
    library it needs is not installed."""
    try:
        return connector_class(kind)
    except (AppError, ImportError) as error:
        logger.warning("The connector %s cannot be offered: %s", kind, error)
        return None


def connector_name(kind: str) -> str:
    """What people call it."""
    connector = find_connector(kind)
    return connector.spec.name if connector else kind


def sign_in_method(connection: Connection) -> AuthMethod | None:
    """The connection's way to authenticate, if a person signs in at the source for it."""
    connector = find_connector(connection.connector)
    methods = connector.spec.auth if connector else ()
    for method in methods:
        if method.name == connection.auth_method and method.oauth:
            return None if method.oauth.client_credentials else method
    return None


def can_browse(connection: Connection) -> bool:
    """Whether the source can show its places."""
    connector = find_connector(connection.connector)
    return connector is not None and Capability.BROWSE in connector.capabilities()
