"""A tenant with an empty base, and workers in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.access import Actor, operator_actor
from accounts.models import User
from accounts.services.tenants import found_tenant
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.knowledge.embedding_server import EmbeddingServer, running_server
from tests.workers import Workers


@pytest.fixture
def keeper(db: None, settings: Any, tmp_path: Any) -> Actor:
    """The operator of a fresh tenant."""
    storages = {**settings.STORAGES}
    storages["default"] = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path / "originals")},
    }
    settings.STORAGES = storages
    owner = User.objects.create_user("keeper@example.com", "x")
    return operator_actor(found_tenant(name="Keepers", owner=owner).id)


@pytest.fixture
def base(keeper: Actor) -> KnowledgeBase:
    """An empty knowledge base."""
    with tenant_scope(keeper.tenant_id):
        return create_knowledge_base(actor=keeper, name="Main")


@pytest.fixture
def workers(monkeypatch: Any, django_capture_on_commit_callbacks: Any) -> Workers:
    """Tasks run when the test says so."""
    return Workers(django_capture_on_commit_callbacks, monkeypatch)


@pytest.fixture
def server(settings: Any) -> Iterator[EmbeddingServer]:
    """Configured beside the local model; new bases use the local one."""
    with running_server() as running:
        for name, value in running.settings().items():
            setattr(settings, name, value)
        yield running
