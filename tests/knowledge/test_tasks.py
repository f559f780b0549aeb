"""Tasks against the real broker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.celery import app
from knowledge.models import Document, KnowledgeBase
from knowledge.tasks import process_document_task, resume_stalled_documents
from tests.workers import Workers


def _lose_the_worker(actor: Actor) -> None:
    """The state a killed worker leaves: claimed, and no sign of life for long."""
    with tenant_scope(actor.tenant_id):
        Document.objects.update(
            status=Document.Status.PROCESSING,
            stage=Document.Stage.EXTRACTING,
            heartbeat_at=timezone.now() - timedelta(hours=1),
        )


@pytest.fixture(autouse=True)
def queue() -> Iterator[str]:
    """A queue that no other process of the test run uses."""
    usual = app.conf.task_default_queue
    app.conf.task_default_queue = f"test-{uuid4()}"
    yield app.conf.task_default_queue
    app.conf.task_default_queue = usual


def test_work_of_a_killed_worker_is_queued_again(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.add(keeper, base, "Herons wade.")
    workers.clear()
    _lose_the_worker(keeper)
    resume_stalled_documents()
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        assert Document.objects.get(id=added.document.id).status == Document.Status.READY


def test_nothing_is_queued_twice_while_the_queue_holds_work(
    keeper: Actor, base: KnowledgeBase, workers: Workers, queue: str
) -> None:
    workers.add(keeper, base, "Herons wade.")
    workers.clear()
    _lose_the_worker(keeper)
    process_document_task.apply_async(("0" * 32, "0" * 32), queue=queue)
    resume_stalled_documents()
    assert len(workers) == 0
