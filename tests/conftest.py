"""The servers of the test run and the cast that every test may call on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership, Role, Tenant
from config.embedded.lease import running_servers
from tests.factories import make_key, make_membership, make_tenant

ApiFactory = Callable[..., APIClient]
BrowserFactory = Callable[[Membership], Client]

_servers = ExitStack()


def pytest_configure() -> None:
    """Start the embedded servers before any database is made. Each worker holds its own lease, and the
    controller holds one all the while, so they start and stop once."""
    _servers.enter_context(
        running_servers(
            settings.GROUNDWORK_DATA,
            database=settings.EMBEDDED_DATABASE,
            broker=settings.EMBEDDED_BROKER,
        )
    )


def pytest_unconfigure() -> None:
    """Whoever leaves last stops the servers."""
    _servers.close()


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    """Rate limits of one test must not reach the next."""
    cache.clear()


@pytest.fixture
def tenant(db: None) -> Tenant:
    """The tenant of the cast."""
    return make_tenant(name="Acme")


@pytest.fixture
def owner(tenant: Tenant) -> Membership:
    """May do everything."""
    return make_membership(tenant=tenant, role=Role.OWNER, email="owner@acme.example")


@pytest.fixture
def admin(owner: Membership) -> Membership:
    """May do everything but make owners."""
    return make_membership(tenant=owner.tenant, role=Role.ADMIN, email="admin@acme.example")


@pytest.fixture
def editor(owner: Membership) -> Membership:
    """Keeps documents."""
    return make_membership(tenant=owner.tenant, role=Role.EDITOR, email="editor@acme.example")


@pytest.fixture
def viewer(owner: Membership) -> Membership:
    """Searches and reads."""
    return make_membership(tenant=owner.tenant, role=Role.VIEWER, email="viewer@acme.example")


@pytest.fixture
def stranger(db: None) -> Membership:
    """Owns another tenant."""
    return make_membership(
        tenant=make_tenant(name="Rival"), role=Role.OWNER, email="owner@rival.example"
    )


@pytest.fixture
def api(tenant: Tenant) -> ApiFactory:
    """`api("read", "write")`: a client with a real key of these scopes; `tenant=` for another tenant's."""

    def client(*scopes: str, tenant: Tenant = tenant) -> APIClient:
        _, text = make_key(tenant=tenant, scopes=scopes)
        made = APIClient(raise_request_exception=False)
        made.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        return made

    return client


@pytest.fixture
def browser(db: None) -> BrowserFactory:
    """`browser(editor)`: a client in which this person is logged in and acts in this tenant."""

    def client(membership: Membership) -> Client:
        made = Client(raise_request_exception=False)
        made.force_login(membership.user)
        session = made.session
        session["tenant_id"] = str(membership.tenant_id)
        session.save()
        return made

    return client
