"""GET /api/v1/me/."""

from __future__ import annotations

from rest_framework.test import APIClient

from accounts.models import Membership, Tenant
from tests.conftest import ApiFactory, BrowserFactory


def test_a_key_learns_its_tenant_and_rights(api: ApiFactory, tenant: Tenant) -> None:
    answer = api("search").get("/api/v1/me/")
    assert answer.status_code == 200
    assert answer.json()["tenant"] == {"id": str(tenant.id), "name": "Acme", "slug": tenant.slug}
    assert answer.json()["actions"] == ["search"]


def test_a_person_learns_their_rights(browser: BrowserFactory, editor: Membership) -> None:
    answer = browser(editor).get("/api/v1/me/")
    assert answer.json()["label"] == "editor@acme.example"
    assert answer.json()["actions"] == ["read", "search", "write"]


def test_nobody_gets_401_with_a_challenge(db: None) -> None:
    answer = APIClient().get("/api/v1/me/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 401
