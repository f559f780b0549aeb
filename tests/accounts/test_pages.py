"""The pages of people are our own, whole and without anything from elsewhere."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Membership
from tests.conftest import BrowserFactory

ENTRANCE = ["login", "signup", "password/reset", "password/reset/done", "confirm-email", "inactive"]
MANAGE = ["email", "password/change", "logout", "2fa", "3rdparty"]


def check(answer: Any) -> None:
    assert answer.status_code == 200
    page = answer.content.decode()
    assert 'class="gw"' in page
    assert page.count("<h1") == 1
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)


@pytest.mark.parametrize("path", ENTRANCE)
def test_entrance(path: str, client: Client, db: None) -> None:
    check(client.get(f"/accounts/{path}/"))


@pytest.mark.parametrize("path", MANAGE)
def test_managing_the_account(path: str, browser: BrowserFactory, viewer: Membership) -> None:
    check(browser(viewer).get(f"/accounts/{path}/", follow=True))


def test_activating_a_second_factor(browser: BrowserFactory, viewer: Membership) -> None:
    check(browser(viewer).get("/accounts/2fa/totp/activate/", follow=True))


def test_every_field_has_a_label(client: Client, db: None) -> None:
    page = client.get("/accounts/login/").content.decode()
    visible = re.findall(r'<input type="(?:email|password)"[^>]*id="([^"]+)"', page)
    assert visible
    assert all(f'<label for="{name}">' in page for name in visible)


def test_the_api_documentation_is_served_from_here(client: Client, db: None) -> None:
    page = client.get("/api/docs/").content.decode()
    assert "swagger-ui-bundle.js" in page
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_the_schema_describes_both_authentications(client: Client, db: None) -> None:
    schema = client.get("/api/schema/", {"format": "json"}).json()
    assert schema["openapi"].startswith("3.1")
    assert set(schema["components"]["securitySchemes"]) == {"apiKey", "session"}
    assert "/api/v1/api-keys/" in schema["paths"]
