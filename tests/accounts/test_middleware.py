"""Which tenant a person acts in."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.context import tenant_badge, tenant_context
from accounts.models import Membership, Role
from accounts.services.tenants import memberships_of
from tests.conftest import BrowserFactory
from tests.factories import make_membership, make_tenant, make_user

ME = "/api/v1/me/"


@pytest.fixture
def both(owner: Membership) -> Membership:
    """The owner's membership in a second tenant, whose name comes later."""
    return make_membership(tenant=make_tenant(name="Zeta"), user=owner.user)


def test_the_first_by_name_is_chosen(owner: Membership, both: Membership, client: Client) -> None:
    client.force_login(owner.user)
    assert client.get(ME).json()["tenant"]["name"] == "Acme"


def test_switching(owner: Membership, both: Membership, client: Client) -> None:
    client.force_login(owner.user)
    answer = client.post("/switch-tenant/", {"tenant": str(both.tenant_id)})
    assert answer["Location"] == "/admin/"
    me = client.get(ME).json()
    assert (me["tenant"]["name"], me["actions"]) == ("Zeta", ["read", "search"])


@pytest.mark.parametrize("wanted", ["", "nonsense", "0190f3f0-0000-7000-8000-000000000000"])
def test_nobody_switches_to_a_foreign_tenant(
    wanted: str, owner: Membership, stranger: Membership, client: Client
) -> None:
    client.force_login(owner.user)
    for tenant in (wanted, str(stranger.tenant_id)):
        assert client.post("/switch-tenant/", {"tenant": tenant}).status_code == 404
    assert client.get(ME).json()["tenant"]["name"] == "Acme"


def test_a_foreign_tenant_in_the_session_changes_nothing(
    owner: Membership, stranger: Membership, client: Client
) -> None:
    client.force_login(owner.user)
    session = client.session
    session["tenant_id"] = str(stranger.tenant_id)
    session.save()
    assert client.get(ME).json()["tenant"]["name"] == "Acme"


def test_a_person_without_tenant_may_found_one(db: None, settings: Any, client: Client) -> None:
    settings.SIGNUP_OPEN = True
    user = make_user()
    client.force_login(user)
    assert client.get("/admin/")["Location"] == "/found-tenant/"
    assert client.get(ME).status_code == 403
    assert client.post("/found-tenant/", {"name": "New"})["Location"] == "/admin/"
    assert [m.role for m in memberships_of(user)] == [Role.OWNER]


def test_or_is_told_whom_to_ask(db: None, settings: Any, client: Client) -> None:
    settings.SIGNUP_OPEN = False
    user = make_user()
    client.force_login(user)
    assert "invitation" in client.get("/found-tenant/").content.decode()
    assert client.post("/found-tenant/", {"name": "New"}).status_code == 403
    assert memberships_of(user) == []


def test_a_session_needs_the_csrf_token(owner: Membership) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner.user)
    answer = client.post(ME.replace("me", "api-keys"), {}, content_type="application/json")
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]


def test_templates_know_the_tenant(owner: Membership, both: Membership, rf: Any) -> None:
    request = rf.get("/")
    assert tenant_badge(request) is None
    request.memberships, request.membership = [owner, both], owner
    assert tenant_badge(request) == ["Acme", "info"]
    assert tenant_context(request)["tenant"] == owner.tenant


def test_the_switcher_is_shown_to_those_with_two(
    browser: BrowserFactory, owner: Membership, both: Membership, viewer: Membership
) -> None:
    path = "/admin/accounts/apikey/"
    assert b"switch-tenant" in browser(owner).get(path).content
    assert b"switch-tenant" not in browser(viewer).get(path).content
