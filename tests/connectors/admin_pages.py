"""What the tests of the admin's pages about sources share: fixtures, a filled form, addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.access import Actor, actor_for_member
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from connectors import registry
from connectors.models import Connection
from connectors.services.connections import create_connection
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.connectors.conftest import Syncs
from tests.connectors.form_connector import FormConnector
from tests.workers import Workers

Browser = Callable[[Membership], Client]
Make = Callable[..., Connection]
JSON: dict[str, Any] = {"HTTP_ACCEPT": "application/json"}
EVIL = "<script>alert(1)</script>"
SECRET = "tok-5up3r-s3cret"


@pytest.fixture(autouse=True)
def form_connector(settings: Any, tmp_path: Any, monkeypatch: Any, scripted: Any) -> None:
    """The form connector beside the scripted ones, and a store of originals."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "originals")},
        },
    }
    monkeypatch.setitem(registry.NATIVE, "form", "tests.connectors.form_connector.FormConnector")
    registry.connector_class.cache_clear()
    FormConnector.verdict, FormConnector.tree = "the <b>form</b> site", {}


@pytest.fixture(name="actor")
def actor_fixture(editor: Membership) -> Actor:
    """Who keeps the documents."""
    return actor_for_member(editor)


@pytest.fixture(name="papers")
def papers_fixture(actor: Actor) -> KnowledgeBase:
    """An empty base."""
    with tenant_scope(actor.tenant_id):
        return create_knowledge_base(actor=actor, name="Papers")


@pytest.fixture(name="make")
def make_fixture(actor: Actor, papers: KnowledgeBase) -> Make:
    """`make("form", config={…})`: a connection."""

    def connection(connector: str = "scripted", **values: Any) -> Connection:
        with tenant_scope(actor.tenant_id):
            return create_connection(actor=actor, base=papers, connector=connector, **values)

    return connection


@pytest.fixture(name="runs")
def runs_fixture(actor: Actor, workers: Workers, monkeypatch: Any) -> Syncs:
    """Runs in this process."""
    return Syncs(actor, workers, monkeypatch)


def url(name: str, connection: Connection | None = None) -> str:
    arguments = [connection.id] if connection else []
    return reverse(f"admin:connectors_connection_{name}", args=arguments)


def form_url(kind: str = "form") -> str:
    return reverse("admin:connectors_connection_connect", args=[kind])


def filled(base: KnowledgeBase | None = None, /, **more: str) -> dict[str, str]:
    """What a person sends; keyword `config__site` is the field `config.site`."""
    values = {
        "name": "Our forms",
        "auth_method": "none",
        "access": "source",
        "principals": "public",
        "schedule": "every",
        "schedule.minutes": "30",
        "full_schedule": "off",
        "deletion_guard_percent": "30",
        "config.site": "https://forms.example",
        "config.limit": "10",
        "config.depth": "flat",
        **({"knowledge_base": str(base.id)} if base else {}),
    }
    return {**values, **{name.replace("__", "."): value for name, value in more.items()}}


def read(connection: Connection) -> Connection:
    with tenant_scope(connection.tenant_id):
        found: Connection = Connection.objects.get(id=connection.id)
        return found


def only(member: Membership) -> Connection:
    with tenant_scope(member.tenant_id):
        found: Connection = Connection.objects.get()
        return found


def act(client: Client, connection: Connection, do: str) -> Any:
    return client.post(url("act", connection), {"do": do}, follow=True)


def body(answer: Any) -> str:
    return str(answer.content.decode())
