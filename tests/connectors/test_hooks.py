"""Webhooks of sources: who may call, and what runs follow."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import ForbiddenError, RejectedError
from connectors import registry
from connectors.base import (
    Category,
    ConnectorSpec,
    Cursor,
    Event,
    WebhookAnswer,
    WebhookReceiver,
    token_auth,
)
from connectors.models import Connection, SyncRun
from connectors.services.connections import pause_connection
from connectors.services.runs import cancel_run, follow_change
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import ScriptedConfig, ScriptedConnector, text

Connect = Callable[..., Connection]
SECRET = "s3cret"
HELLO = b"challenge:42"


class HookedConnector(ScriptedConnector, WebhookReceiver):
    """Signs with its token."""

    spec = ConnectorSpec(
        kind="hooked",
        name="Hooked",
        description="Is told of changes.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
        auth=(token_auth(),),
    )

    def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        token = self.credentials.token.get_secret_value()  # type: ignore[attr-defined]
        if not hmac.compare_digest(headers.get("X-Signature", ""), signature(token, body)):
            raise ForbiddenError("The signature is wrong.")
        if body.startswith(b"challenge:"):
            return WebhookAnswer(sync=False, body=body.decode().removeprefix("challenge:"))
        return WebhookAnswer()


def signature(token: str, body: bytes) -> str:
    return hmac.new(token.encode(), body, "sha256").hexdigest()


@pytest.fixture
def hooked(connect: Connect, monkeypatch: Any) -> Connection:
    """A connection whose source tells of changes."""
    monkeypatch.setitem(registry.NATIVE, "hooked", f"{__name__}.HookedConnector")
    registry.connector_class.cache_clear()
    return connect("hooked", credentials={"token": SECRET})


def call(
    client: Client, connection: Connection, body: bytes = b"changed", *, token: str = SECRET
) -> Any:
    return client.post(
        f"/api/v1/hooks/{connection.id}/",
        body,
        content_type="application/x-anything",
        headers={"X-Signature": signature(token, body)},
    )


def runs(connection: Connection) -> list[tuple[str, str, str]]:
    """Kind, trigger and state, oldest first."""
    with tenant_scope(connection.tenant_id):
        rows = connection.runs.order_by("created_at", "id")
        return [(run.kind, run.trigger, run.status) for run in rows]


QUEUED = ("incremental", "webhook", "queued")
DONE = ("incremental", "webhook", "succeeded")


def test_a_signed_call_starts_a_run(client: Client, hooked: Connection, syncs: Syncs) -> None:
    answer = call(client, hooked)
    assert (answer.status_code, answer.content) == (200, b"")
    assert runs(hooked) == [QUEUED]


def test_a_challenge_is_answered_as_plain_text(client: Client, hooked: Connection) -> None:
    answer = call(client, hooked, HELLO)
    assert (answer.status_code, answer.content) == (200, b"42")
    assert answer["Content-Type"].startswith("text/plain")
    assert runs(hooked) == []


@pytest.mark.parametrize("token", ["wrong", ""])
def test_a_wrong_signature_starts_nothing(client: Client, hooked: Connection, token: str) -> None:
    answer = call(client, hooked, token=token)
    assert answer.status_code == 403
    assert SECRET not in answer.content.decode()
    assert runs(hooked) == []


def test_what_takes_no_webhooks_is_not_there(
    client: Client, hooked: Connection, connect: Connect
) -> None:
    unfinished = connect("hooked", name="unfinished")
    former = connect(name="former")
    with tenant_scope(former.tenant_id):
        Connection.objects.filter(id=former.id).update(connector="former")
    answers = [
        call(client, connect(name="other")),
        call(client, unfinished),
        call(client, former),
        client.post(f"/api/v1/hooks/{uuid4()}/", b"", content_type="text/plain"),
        client.post("/api/v1/hooks/nonsense/", b"", content_type="text/plain"),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert len({answer.content for answer in answers}) == 1
    assert client.get(f"/api/v1/hooks/{hooked.id}/").status_code == 405


def test_a_body_is_bounded(client: Client, hooked: Connection) -> None:
    assert call(client, hooked, b"x" * (1024 * 1024 + 1)).status_code == 413
    assert call(client, hooked, b"x" * 1024 * 1024).status_code == 200


def test_many_calls_while_one_run_waits_are_one(
    client: Client, hooked: Connection, syncs: Syncs
) -> None:
    for _ in range(5):
        assert call(client, hooked).status_code == 200
    assert runs(hooked) == [QUEUED]
    assert not syncs.fresh(hooked).change_noticed


def test_a_call_while_a_run_goes_on_is_followed_by_one_other(
    client: Client, hooked: Connection, syncs: Syncs
) -> None:
    told: list[int] = []

    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        if not told:
            told.extend(call(client, hooked).status_code for _ in range(5))

    ScriptedConnector.script = script
    syncs.run(hooked)
    assert told == [200] * 5
    assert [run[1:] for run in runs(hooked)] == [("operator", "succeeded"), QUEUED[1:]]
    syncs.work()
    assert runs(hooked)[1] == DONE
    assert len(runs(hooked)) == 2
    assert not syncs.fresh(hooked).change_noticed


def test_a_run_that_does_not_look_for_changes_is_followed_too(
    client: Client, hooked: Connection, syncs: Syncs
) -> None:
    syncs.start(hooked, SyncRun.Kind.RETRY)
    call(client, hooked)
    assert len(runs(hooked)) == 1
    syncs.work()
    assert runs(hooked)[1] == QUEUED


def test_a_change_is_remembered_until_a_run_looks(
    client: Client, hooked: Connection, syncs: Syncs, keeper: Actor
) -> None:
    def script(_self: Any, _cursor: Cursor) -> Iterator[Event]:
        yield text("a")
        call(client, hooked)
        raise RejectedError("No such space.")

    ScriptedConnector.script = script
    assert syncs.run(hooked).status == "failed"
    assert len(runs(hooked)) == 1, "a run that failed is not repeated at once"
    assert syncs.fresh(hooked).change_noticed
    run = syncs.start(hooked)
    assert not syncs.fresh(hooked).change_noticed, "this one will see it"
    with tenant_scope(keeper.tenant_id):
        cancel_run(actor=keeper, run=run)
    assert len(runs(hooked)) == 2


def test_a_paused_connection_hears_nothing(
    client: Client, hooked: Connection, keeper: Actor
) -> None:
    with tenant_scope(keeper.tenant_id):
        pause_connection(actor=keeper, connection=hooked)
    assert call(client, hooked).status_code == 200
    assert runs(hooked) == []
    assert follow_change(keeper.tenant_id, uuid4()) is None
