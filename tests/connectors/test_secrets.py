"""Credentials stay where they are: not in logs, runs, audit events or answers."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.access import Actor
from accounts.api.problems import from_app_error
from accounts.models import AuditEvent
from accounts.tenancy import tenant_scope
from config.errors import AppError
from connectors.base import Cursor, Event
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services.connections import check_connection, update_connection
from tests.connectors.conftest import Syncs
from tests.connectors.scripted import ScriptedConnector, file, text
from tests.loopback import Answer, LoopbackServer, loopback_server

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SECRET = "s3cr3t-value"


@pytest.fixture
def server(settings: Any) -> Iterator[LoopbackServer]:
    """A source on loopback."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    with loopback_server() as running:
        yield running


def _requests(server: LoopbackServer) -> Callable[[ScriptedConnector, Cursor], Iterator[Event]]:
    """A script that proves who it is in every way there is, and fails."""

    def script(connector: ScriptedConnector, _cursor: Cursor) -> Iterator[Event]:
        token = connector.credentials.token.get_secret_value()  # type: ignore[attr-defined]
        client = connector.context.client(server.url)
        connector.context.log.debug("Reading with %s", connector.credentials)
        yield text("a")
        try:
            client.get_json(f"/bot{token}", params={"key": token})
        except AppError as error:
            yield file("b", error)
        client.post_json("/x", {"token": token}, headers={"X-Api-Key": token})

    return script


@pytest.mark.parametrize("status", [401, 403, 404, 429, 302])
def test_a_failing_sync_tells_no_secret(
    connect: Callable[..., Connection],
    syncs: Syncs,
    server: LoopbackServer,
    keeper: Actor,
    caplog: Any,
    status: int,
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="urllib3")
    headers = {"Retry-After": "3600"} if status == 429 else {"Location": "/again"}
    server.default = lambda asked: Answer(status, json.dumps(dict(asked.headers)).encode(), headers)
    connection = connect(auth_method="token", credentials={"token": SECRET})
    ScriptedConnector.script = _requests(server)
    run = syncs.run(connection)
    assert run.error
    assert SECRET in str(server.asked), "it was sent"
    assert SECRET not in _told(keeper)
    assert SECRET not in caplog.text.replace(f"/bot{SECRET}", ""), "only a path may be logged"


def test_wrong_credentials_are_named_without_their_value(
    connect: Callable[..., Connection], keeper: Actor
) -> None:
    with pytest.raises(AppError) as caught:
        connect(auth_method="token", credentials={"tokn": SECRET})
    assert SECRET not in from_app_error(caught.value).content.decode()
    assert SECRET not in caught.getrepr(chain=True).__str__()
    connection = connect(auth_method="token", credentials={"token": SECRET})
    with tenant_scope(keeper.tenant_id):
        update_connection(actor=keeper, connection=connection, credentials={"token": SECRET + "2"})
    assert SECRET not in connection.sealed_credentials
    assert SECRET not in _told(keeper)


def test_credentials_of_another_key_fail_with_advice(
    connect: Callable[..., Connection], syncs: Syncs, settings: Any, keeper: Actor
) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["old"]
    connection = connect(auth_method="token", credentials={"token": SECRET})
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new"]
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "sealed")
    with pytest.raises(AppError) as caught, tenant_scope(keeper.tenant_id):
        check_connection(actor=keeper, connection=syncs.fresh(connection))
    assert "GROUNDWORK_ENCRYPTION_KEYS" in from_app_error(caught.value).content.decode()


def test_keys_are_rotated_by_command(
    connect: Callable[..., Connection], syncs: Syncs, settings: Any
) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["old"]
    connection = connect(auth_method="token", credentials={"token": SECRET})
    connect(name="Without")
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new", "old"]
    out = io.StringIO()
    call_command("groundwork", "rotate-keys", stdout=out)
    assert "1 secrets are encrypted" in out.getvalue()
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new"]
    assert syncs.fresh(connection).credentials == {"token": SECRET}
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["newest"]
    with pytest.raises(CommandError, match="1 with none"):
        call_command("groundwork", "rotate-keys")


def _told(actor: Actor) -> str:
    """Everything about syncs that people are shown."""
    with tenant_scope(actor.tenant_id):
        rows = [
            row
            for model in (SyncRun, SyncItem, AuditEvent, Connection)
            for row in model.objects.values()
        ]
    return str(rows)
