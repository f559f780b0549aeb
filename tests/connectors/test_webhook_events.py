"""What webhooks are told of syncs and documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts import tasks
from accounts.access import Actor
from accounts.models import WebhookDelivery
from accounts.services.webhooks import CHOOSABLE, create_webhook
from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, RejectedError
from connectors.base import Cursor
from connectors.models import Connection
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import ScriptedConnector, file, text

Connect = Callable[..., Connection]


@pytest.fixture
def told(keeper: Actor, monkeypatch: Any) -> Callable[[], list[tuple[str, dict[str, Any]]]]:
    """A webhook that wants everything; returns type and data of what it was told."""
    monkeypatch.setattr(tasks.deliver_webhook_task, "delay", lambda *_ids: None)
    with tenant_scope(keeper.tenant_id):
        create_webhook(actor=keeper, url="https://hooks.example/", event_types=list(CHOOSABLE))

    def read() -> list[tuple[str, dict[str, Any]]]:
        with tenant_scope(keeper.tenant_id):
            rows = WebhookDelivery.objects.order_by("created_at", "id")
            return [(row.event_type, row.payload["data"]) for row in rows]

    return read


def test_a_sync_and_its_documents_are_told(
    connect: Connect, syncs: Syncs, told: Callable[[], list[tuple[str, dict[str, Any]]]]
) -> None:
    connection = connect()
    run = syncs.play(connection, text("a", title="Herons"))
    (first, sync), (second, document) = told()
    assert (first, second) == ("sync.succeeded", "document.ready")
    assert (sync["run_id"], sync["inserted"], sync["connection"]) == (
        str(run.id),
        1,
        connection.name,
    )
    found = syncs.documents()["a"]
    assert document == {
        "document_id": str(found.id),
        "knowledge_base_id": str(found.knowledge_base_id),
        "title": "Herons",
        "external_id": "a",
        "source": "scripted",
        "source_id": str(connection.id),
        "status": "ready",
        "error": "",
        "error_code": "",
    }


def test_a_new_version_is_told_under_the_same_id(
    connect: Connect, syncs: Syncs, told: Callable[[], list[tuple[str, dict[str, Any]]]]
) -> None:
    connection = connect()
    syncs.play(connection, text("a", "Herons wade."))
    syncs.play(connection, text("a", "Storks stand."))
    ids = [data["document_id"] for event, data in told() if event == "document.ready"]
    assert ids == [str(syncs.documents()["a"].id)] * 2


def test_failures_are_told(
    connect: Connect, syncs: Syncs, told: Callable[[], list[tuple[str, dict[str, Any]]]]
) -> None:
    def script(_self: Any, _cursor: Cursor) -> Any:
        yield from ()
        raise CredentialsError("Expired.")

    connection = connect()
    syncs.play(
        connection,
        file("a", RejectedError("Too large.")),
        file("b", b"%PDF-1.7 broken", filename="b.pdf"),
    )
    ScriptedConnector.script = script
    syncs.run(connection)
    events = [event for event, _ in told()]
    assert sorted(events) == ["document.failed", "sync.failed", "sync.partial"]
    failed = dict(told())["document.failed"]
    assert failed["external_id"] == "b"
    assert failed["error"]
    assert dict(told())["sync.failed"]["error"] == "Expired."
