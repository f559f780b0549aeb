"""Stored files that no document owns."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from accounts.access import Actor
from accounts.tenancy import new_id
from knowledge.models import KnowledgeBase
from knowledge.services.orphans import remove_orphans
from tests.workers import Workers


def stored(name: str, *, days_old: float = 0) -> Path:
    path = Path(default_storage.path(default_storage.save(name, ContentFile(b"x"))))
    moment = time.time() - days_old * 86_400
    os.utime(path, (moment, moment))
    return path


def test_only_old_files_without_a_document_go(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    document = workers.ingest(keeper, base, "Herons wade.").document
    owned = Path(default_storage.path(document.original.name or ""))
    moment = time.time() - 3 * 86_400
    os.utime(owned, (moment, moment))
    orphan = stored(f"{keeper.tenant_id}/{base.id}/{new_id()}-abc", days_old=2)
    young = stored(f"{keeper.tenant_id}/{base.id}/{new_id()}-abc")
    capture = stored(f"captures/{keeper.tenant_id}/{base.id}/abc.json", days_old=2)
    assert remove_orphans() == 1
    assert not orphan.exists()
    assert owned.exists()
    assert young.exists()
    assert capture.exists()


@pytest.mark.usefixtures("keeper")
def test_an_empty_store_has_none() -> None:
    assert remove_orphans() == 0
