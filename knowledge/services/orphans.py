"""Removing stored bytes that no document owns: what a process left that was killed between storing and
committing, or between committing a deletion and doing it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from uuid import UUID

from django.core.files.storage import default_storage
from django.utils import timezone

from knowledge.models import Document

logger = logging.getLogger(__name__)

_YOUNG = timedelta(days=1)  # a transaction that will name the file may still be going on
_BATCH = 500


def remove_orphans() -> int:
    """Delete originals that are a day old and named by no document of any tenant. Returns how many."""
    removed, stored = 0, _stored_names()
    while names := list(islice(stored, _BATCH)):
        owned = set(Document.unscoped.filter(original__in=names).values_list("original", flat=True))
        for name in names:
            if name not in owned and _is_old(name):
                default_storage.delete(name)
                removed += 1
    if removed:
        logger.info("%s stored files that no document owns were removed", removed)
    return removed


def _stored_names() -> Iterator[str]:
    """Every original, as `original_name` spells it. Other folders of the store are left alone."""
    for tenant in _folders(""):
        for base in _folders(tenant):
            for file in default_storage.listdir(f"{tenant}/{base}")[1]:
                yield f"{tenant}/{base}/{file}"


def _folders(place: str) -> list[str]:
    try:
        return [name for name in default_storage.listdir(place)[0] if _is_uuid(name)]
    except FileNotFoundError:
        return []


def _is_old(name: str) -> bool:
    try:
        return default_storage.get_modified_time(name) < timezone.now() - _YOUNG
    except FileNotFoundError:
        return False


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
