"""Signing in at a source and keeping the tokens, against a real OAuth server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests
import time_machine
from django.db import connections
from django.test import Client
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import AuditEvent, Membership, Role
from accounts.tenancy import tenant_scope
from config.errors import CredentialsError, InvalidInputError
from connectors import registry
from connectors.base import (
    AuthMethod,
    Category,
    ConnectorSpec,
    Cursor,
    Event,
    OAuthEndpoints,
    OAuthTokens,
    oauth,
)
from connectors.models import Connection
from connectors.services.connections import check_connection, create_connection
from connectors.services.oauth_client import address_of, client_of
from connectors.services.oauth_tokens import OAuthBearer
from connectors.services.opening import open_connector
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.conftest import BrowserFactory
from tests.connectors.conftest import Syncs
from tests.connectors.oauth_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    SERVICE_ID,
    OAuthServer,
    running_oauth_server,
)
from tests.connectors.scripted import ScriptedConfig, ScriptedConnector, text
from tests.factories import make_membership

pytestmark = [pytest.mark.slow, pytest.mark.allow_hosts(["127.0.0.1"])]

OWN = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


class SignInConnector(ScriptedConnector):
    """Asks the server who it is."""

    server_url = ""

    def check(self) -> str:
        found = self.context.client(self.server_url).get_json("/api/me")
        return str(found["name"])

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        yield text(self.check())


@pytest.fixture(scope="module")
def process(tmp_path_factory: Any) -> Iterator[OAuthServer]:
    """One server for all tests here."""
    with running_oauth_server(tmp_path_factory.mktemp("oauth")) as running:
        yield running


@pytest.fixture
def server(process: OAuthServer, settings: Any, monkeypatch: Any) -> OAuthServer:
    """The server, and a connector for it."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    settings.GROUNDWORK_URL = "http://localhost:8000"
    ends = (f"{process.url}/o/authorize/", f"{process.url}/o/token/")
    service = OAuthEndpoints(*ends, client_credentials=True, basic_client=False)
    spec = ConnectorSpec(
        kind="signin",
        name="Sign-in",
        description="Wants a sign-in.",
        category=Category.CUSTOM,
        config=ScriptedConfig,
        auth=(
            oauth(OAuthEndpoints(*ends, scopes=("read",), extra={"access_type": "offline"})),
            AuthMethod("service", "Service", OAuthTokens, oauth=service),
        ),
    )
    monkeypatch.setattr(SignInConnector, "spec", spec)
    monkeypatch.setattr(SignInConnector, "server_url", process.url)
    monkeypatch.setitem(registry.NATIVE, "signin", f"{__name__}.SignInConnector")
    registry.connector_class.cache_clear()
    process.grants()
    return process


@pytest.fixture
def connection(server: OAuthServer, editor: Membership) -> Connection:
    """A connection of the cast's tenant, with a client of its own."""
    actor = actor_for_member(editor)
    with tenant_scope(actor.tenant_id):
        base: KnowledgeBase = create_knowledge_base(actor=actor, name="Main")
        return create_connection(
            actor=actor, base=base, connector="signin", auth_method="oauth", credentials=dict(OWN)
        )


def _start(client: Client, connection: Connection) -> Any:
    return client.get(reverse("connectors_oauth_start", args=[connection.id]))


def _sign_in_at(address: str) -> str:
    """What a browser does at the source; returns where the source sends it back to."""
    with requests.Session() as browser:
        while not address.startswith("http://localhost:8000/"):
            answer = browser.get(address, allow_redirects=False, timeout=10)
            assert answer.status_code == 302, answer.text
            address = urljoin(address, answer.headers["Location"])
    return address


def _path(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def _fresh(connection: Connection) -> Connection:
    with tenant_scope(connection.tenant_id):
        found: Connection = Connection.objects.get(id=connection.id)
    return found


def _signed_in(client: Client, connection: Connection) -> Connection:
    answer = client.get(_path(_sign_in_at(_start(client, connection)["Location"])))
    assert answer.status_code == 302, answer.content
    return _fresh(connection)


# --- signing in ----------------------------------------------------------------------------------


def test_a_person_signs_in(
    connection: Connection, browser: BrowserFactory, editor: Membership, server: OAuthServer
) -> None:
    client = browser(editor)
    asked = parse_qs(urlsplit(_start(client, connection)["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["redirect_uri"] == ["http://localhost:8000/connect/oauth/callback/"]
    assert (asked["scope"], asked["access_type"]) == (["read"], ["offline"])
    with tenant_scope(connection.tenant_id):
        Connection.objects.update(status="needs_authorisation", credential_failures=3)
    answer = client.get(_path(_sign_in_at(_start(client, connection)["Location"])))
    assert answer["Location"] == reverse("admin:connectors_connection_change", args=[connection.id])
    found = _fresh(connection)
    tokens = found.credentials
    assert (found.status, found.credential_failures) == ("active", 0)
    assert tokens["access_token"]
    assert tokens["refresh_token"]
    assert tokens["expires_at"] > time.time() + 1000
    assert {name: tokens[name] for name in OWN} == OWN
    assert tokens["access_token"] not in found.sealed_credentials
    assert server.grants() == ["authorization_code"]
    assert open_connector(found).check() == "ana"
    with tenant_scope(connection.tenant_id):
        event = AuditEvent.objects.get(action="connection.authorised")
    assert event.actor == editor.user.email
    assert tokens["access_token"] not in str(list(client.session.items()))


def test_the_installations_client_serves_too(
    connection: Connection, browser: BrowserFactory, editor: Membership, settings: Any
) -> None:
    with tenant_scope(connection.tenant_id):
        Connection.objects.update(sealed_credentials="")
    settings.GROUNDWORK_OAUTH_CLIENTS = {"signin": (CLIENT_ID, CLIENT_SECRET)}
    found = _signed_in(browser(editor), connection)
    assert set(found.credentials) == {"access_token", "refresh_token", "expires_at"}


def test_without_a_client_it_says_so(
    connection: Connection, browser: BrowserFactory, editor: Membership
) -> None:
    with tenant_scope(connection.tenant_id):
        Connection.objects.update(sealed_credentials="")
    client = browser(editor)
    answer = _start(client, connection)
    assert "/admin/connectors/connection/" in answer["Location"]
    assert "No OAuth client" in _messages(answer)


def test_a_state_serves_once(
    connection: Connection, browser: BrowserFactory, editor: Membership
) -> None:
    client = browser(editor)
    back = _path(_sign_in_at(_start(client, connection)["Location"]))
    assert client.get(back).status_code == 302
    again = client.get(back)
    assert again.status_code == 403
    assert b"answered already" in again.content


@pytest.mark.parametrize("change", ["other state", "other session", "no state"])
def test_a_strangers_answer_is_refused(
    connection: Connection,
    browser: BrowserFactory,
    editor: Membership,
    server: OAuthServer,
    change: str,
) -> None:
    client = browser(editor)
    back = _path(_sign_in_at(_start(client, connection)["Location"]))
    if change == "other session":
        client = browser(editor)
    elif change == "other state":
        back = back.replace("state=", "state=x")
    else:
        back = back.partition("&state")[0].partition("state=")[0]
    answer = client.get(back)
    assert answer.status_code == 403
    assert b"not begun in this browser" in answer.content
    assert "access_token" not in _fresh(connection).credentials
    assert server.grants() == []


def test_a_late_answer_is_refused(
    connection: Connection, browser: BrowserFactory, editor: Membership
) -> None:
    client = browser(editor)
    back = _path(_sign_in_at(_start(client, connection)["Location"]))
    with time_machine.travel(time.time() + 601, tick=True):
        answer = client.get(back)
    assert answer.status_code == 403
    assert b"ten minutes" in answer.content


def test_a_refusal_is_shown(
    connection: Connection, browser: BrowserFactory, editor: Membership
) -> None:
    client = browser(editor)
    state = parse_qs(urlsplit(_start(client, connection)["Location"]).query)["state"][0]
    answer = client.get(
        reverse("connectors_oauth_callback"),
        {"state": state, "error": "access_denied", "error_description": "Ana said <b>no</b>."},
    )
    assert answer.status_code == 302
    assert "access_denied. Ana said b no /b ." in _messages(answer)


def test_a_wrong_secret_is_shown(
    connection: Connection, browser: BrowserFactory, editor: Membership
) -> None:
    connection.credentials = {**OWN, "client_secret": "wr0ng"}
    with tenant_scope(connection.tenant_id):
        connection.save()
    client = browser(editor)
    answer = client.get(_path(_sign_in_at(_start(client, connection)["Location"])))
    assert "invalid_client" in _messages(answer)
    assert "wr0ng" not in _messages(answer)


def test_strangers_and_viewers_are_kept_out(
    connection: Connection,
    browser: BrowserFactory,
    stranger: Membership,
    viewer: Membership,
    editor: Membership,
) -> None:
    assert _start(browser(stranger), connection).status_code == 404
    assert _start(browser(viewer), connection).status_code == 403
    assert _start(Client(), connection)["Location"].startswith("/accounts/login/")
    assert Client().get("/connect/oauth/callback/")["Location"].startswith("/accounts/login/")


def test_another_tenants_person_cannot_finish(
    connection: Connection, browser: BrowserFactory, editor: Membership, stranger: Membership
) -> None:
    client = browser(editor)
    back = _path(_sign_in_at(_start(client, connection)["Location"]))
    make_membership(tenant=stranger.tenant, role=Role.EDITOR, user=editor.user)
    session = client.session
    session["tenant_id"] = str(stranger.tenant_id)
    session.save()
    assert client.get(back).status_code == 404
    assert "access_token" not in _fresh(connection).credentials


# --- keeping tokens ------------------------------------------------------------------------------


def _age(connection: Connection, **changes: Any) -> Connection:
    """Make the access token an old one."""
    connection.credentials = {**connection.credentials, "expires_at": time.time() + 5, **changes}
    with tenant_scope(connection.tenant_id):
        connection.save(update_fields=["sealed_credentials"])
    return connection


def test_an_ending_token_is_renewed_and_rotated(
    connection: Connection, browser: BrowserFactory, editor: Membership, server: OAuthServer
) -> None:
    before = _age(_signed_in(browser(editor), connection)).credentials
    server.grants()
    assert open_connector(_fresh(connection)).check() == "ana"
    after = _fresh(connection).credentials
    assert server.grants() == ["refresh_token"]
    assert after["refresh_token"] != before["refresh_token"]
    assert after["access_token"] != before["access_token"]
    assert {name: after[name] for name in OWN} == OWN


def test_a_refused_token_is_renewed(
    connection: Connection, browser: BrowserFactory, editor: Membership, server: OAuthServer
) -> None:
    _age(_signed_in(browser(editor), connection), access_token="useless", expires_at=None)
    server.grants()
    assert open_connector(_fresh(connection)).check() == "ana"
    assert server.grants() == ["refresh_token"]


def test_a_revoked_access_asks_for_a_person(
    connection: Connection,
    browser: BrowserFactory,
    editor: Membership,
    server: OAuthServer,
    syncs: Syncs,
) -> None:
    _age(_signed_in(browser(editor), connection))
    server.get("/revoke")
    server.grants()
    actor = actor_for_member(editor)
    with pytest.raises(CredentialsError, match="invalid_grant"):
        check_connection(actor=actor, connection=_fresh(connection))
    assert server.grants() == ["refresh_token"], "asked once"
    syncs._actor = actor
    for _ in range(3):
        run = syncs.run(connection)
        assert (run.status, run.error_code) == ("failed", "remote_credentials")
    found = _fresh(connection)
    assert found.status == "needs_authorisation"
    assert "invalid_grant" in found.status_reason
    found = _signed_in(browser(editor), connection)
    assert found.status == "active"
    assert open_connector(found).check() == "ana"


def test_a_service_needs_no_person(
    connection: Connection, browser: BrowserFactory, editor: Membership, server: OAuthServer
) -> None:
    connection.credentials = {"client_id": SERVICE_ID, "client_secret": CLIENT_SECRET}
    connection.auth_method = "service"
    with tenant_scope(connection.tenant_id):
        connection.save()
    assert open_connector(_fresh(connection)).check() == "service"
    assert server.grants() == ["client_credentials"]
    assert open_connector(_fresh(connection)).check() == "service"
    assert server.grants() == [], "the token is kept"
    answer = _start(browser(editor), connection)
    assert "needs no sign-in" in _messages(answer)


@pytest.mark.django_db(transaction=True)
def test_two_workers_renew_once(
    connection: Connection, browser: BrowserFactory, editor: Membership, server: OAuthServer
) -> None:
    _age(_signed_in(browser(editor), connection))
    server.grants()
    names, start = [], threading.Barrier(4)

    def work() -> None:
        try:
            with tenant_scope(connection.tenant_id):
                mine = Connection.objects.get(id=connection.id)
            start.wait()
            names.append(open_connector(mine).check())
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert names == ["ana"] * 4
    assert server.grants() == ["refresh_token"]
    assert OAuthBearer(_fresh(connection)).renew(), "the token that was kept is the newest"


# --- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "value", "address"),
    [
        ("https://{place}.vendor.example/token", "acme", "https://acme.vendor.example/token"),
        ("https://{place}/token", "git.acme.example:8443", "https://git.acme.example:8443/token"),
        ("{place}/token", "https://git.acme.example/", "https://git.acme.example/token"),
        ("https://vendor.example/{place}/token", "acme", "https://vendor.example/acme/token"),
    ],
)
def test_configuration_fills_addresses(template: str, value: str, address: str) -> None:
    assert address_of(template, {"place": value}) == address


@pytest.mark.parametrize(
    "value", ["evil.example/?", "evil.example#", "a@evil.example", "a.b", "", "a\nb", "a:1"]
)
def test_a_label_leads_to_no_other_host(value: str) -> None:
    with pytest.raises(InvalidInputError):
        address_of("https://{place}.vendor.example/token", {"place": value})


@pytest.mark.parametrize(
    ("template", "is_shown"),
    [
        ("https://vendor.example/token", True),
        ("https://vendor.example/{place}/token", True),
        ("https://{place}.vendor.example/token", True),
        ("https://{place}/token", False),
        ("https://{place}.com/token", False),
        ("{place}/token", False),
    ],
)
def test_no_chosen_host_sees_the_installations_client(
    template: str, is_shown: bool, connection: Connection, settings: Any, monkeypatch: Any
) -> None:
    settings.GROUNDWORK_OAUTH_CLIENTS = {"signin": (CLIENT_ID, CLIENT_SECRET)}
    endpoints = OAuthEndpoints(template, template)
    monkeypatch.setattr("connectors.services.oauth_client.endpoints_of", lambda _c: endpoints)
    if is_shown:
        assert client_of(connection, {}) == (CLIENT_ID, CLIENT_SECRET)
    else:
        with pytest.raises(CredentialsError, match="your own client id and secret"):
            client_of(connection, {})


def _messages(answer: Any) -> str:
    from django.contrib.messages import get_messages

    return " ".join(str(message) for message in get_messages(answer.wsgi_request))
