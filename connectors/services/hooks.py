"""What happens when a source tells of a change."""

from __future__ import annotations

from collections.abc import Mapping

from config.errors import InvalidInputError, NotFoundError
from connectors.access import find_connection_anywhere
from connectors.base import WebhookAnswer, WebhookReceiver
from connectors.models import Connection
from connectors.services.opening import open_connector
from connectors.services.runs import follow_change


def receive_hook(pk: str, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
    """Let the connector check who sends, then look for changes if it wants to. Raises `NotFoundError` for
    what takes no webhooks, `ForbiddenError` for a wrong signature. Not to be called in a transaction."""
    connection = find_connection_anywhere(pk)
    answer = _receiver(connection).receive(headers, body)
    if answer.sync:
        follow_change(connection.tenant_id, connection.id)
    return answer


def _receiver(connection: Connection) -> WebhookReceiver:
    try:
        connector = open_connector(connection)
    except (
        InvalidInputError,
        NotFoundError,
    ) as error:  # what is not configured is no stranger's business
        raise NotFoundError from error
    if not isinstance(connector, WebhookReceiver):
        raise NotFoundError
    return connector
