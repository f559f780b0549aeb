"""The stored bytes of documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import transaction

logger = logging.getLogger(__name__)


def original_name(tenant_id: UUID, base_id: UUID, document_id: UUID, content_hash: str) -> str:
    """Where an original is stored. The user's file name is data in the row, never part of a path."""
    return f"{tenant_id}/{base_id}/{document_id}-{content_hash[:16]}"


def forget_originals(names: Sequence[str]) -> None:
    """Delete stored files once the present transaction is committed; a failure leaves an orphan and a log line."""

    def _delete() -> None:
        for name in names:
            try:
                default_storage.delete(name)
            except OSError:
                logger.exception("The original %s could not be deleted", name)

    if names:
        transaction.on_commit(_delete)
