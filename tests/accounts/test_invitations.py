"""From the invitation to the first page, and what a link does not do."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent, Invitation, Membership, User
from accounts.services.tenants import memberships_of
from tests.conftest import BrowserFactory
from tests.factories import PASSWORD, make_user

NEW_PASSWORD = "quite a long phrase 7"


@pytest.fixture
def link(
    browser: BrowserFactory,
    admin: Membership,
    mailoutbox: list[Any],
    django_capture_on_commit_callbacks: Any,
) -> str:
    """The path in the mail that an admin has sent to new@example.com."""
    with django_capture_on_commit_callbacks(execute=True):
        answer = browser(admin).post(
            "/api/v1/members/",
            {"email": "New@Example.com", "role": "editor"},
            content_type="application/json",
        )
    assert answer.status_code == 201
    assert mailoutbox[0].to == ["new@example.com"]
    found = re.search(r"https?://[^/]+(/invitations/\S+)", mailoutbox[0].body)
    assert found
    return found[1]


def sign_up(client: Client, email: str) -> Any:
    return client.post(
        "/accounts/signup/",
        {"email": email, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD},
        follow=True,
    )


def test_a_new_person_joins_by_signing_up(link: str, settings: Any, admin: Membership) -> None:
    settings.SIGNUP_OPEN = False
    client = Client()
    page = client.get(link)
    assert "Join Acme" in page.content.decode()
    answer = sign_up(client, "new@example.com")
    assert answer.status_code == 200
    membership = memberships_of(User.objects.get(email="new@example.com"))[0]
    assert (membership.tenant_id, membership.role) == (admin.tenant_id, "editor")
    assert client.get("/api/v1/me/").json()["tenant"]["name"] == "Acme"
    joined = AuditEvent.unscoped.get(action="member.joined")
    assert (joined.tenant_id, joined.actor) == (admin.tenant_id, "new@example.com")


def test_a_person_with_an_account_joins_with_a_click(link: str) -> None:
    user = make_user(email="new@example.com")
    client = Client()
    client.get(link)
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    User.objects.filter(id=user.id).update(last_login=timezone.now())
    assert "Join" in client.get(link).content.decode() or memberships_of(user)
    client.post(link)
    assert [m.role for m in memberships_of(user)] == ["editor"]


def test_the_link_works_once(link: str) -> None:
    client = Client()
    client.force_login(make_user(email="new@example.com"))
    assert client.post(link)["Location"] == "/admin/"
    assert client.get(link).status_code == 404


def test_the_link_serves_only_its_address(link: str, settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    other = make_user(email="other@example.com")
    client = Client()
    client.force_login(other)
    assert client.post(link).status_code == 403
    assert memberships_of(other) == []
    client = Client()
    client.get(link)
    sign_up(client, "third@example.com")
    assert not User.objects.filter(email="third@example.com").exists()


def test_opening_the_link_joins_nobody(link: str) -> None:
    user = make_user(email="new@example.com")
    client = Client()
    client.force_login(user)
    assert client.get(link).status_code == 200
    assert memberships_of(user) == []


def test_the_link_ends_after_a_week(link: str) -> None:
    with time_machine.travel(timezone.now() + timedelta(days=8)):
        assert Client().get(link).status_code == 404


def test_an_unknown_link_says_so(db: None) -> None:
    answer = Client().get("/invitations/nonsense/")
    assert answer.status_code == 404
    assert "does not work" in answer.content.decode()


def test_the_token_is_stored_hashed(link: str) -> None:
    token = link.strip("/").rsplit("/", 1)[1]
    assert token not in str(Invitation.unscoped.values().get())


def test_without_invitation_sign_up_is_closed(db: None, settings: Any) -> None:
    settings.SIGNUP_OPEN = False
    assert "closed" in Client().get("/accounts/signup/").content.decode().lower()
    sign_up(Client(), "someone@example.com")
    assert not User.objects.exists()


def test_where_sign_up_is_open_a_person_founds_a_tenant(db: None, settings: Any) -> None:
    settings.SIGNUP_OPEN = True
    client = Client()
    sign_up(client, "ana@example.com")
    membership = memberships_of(User.objects.get(email="ana@example.com"))[0]
    assert (membership.tenant.name, membership.role) == ("ana", "owner")


def test_only_an_owner_invites_owners(browser: BrowserFactory, admin: Membership) -> None:
    answer = browser(admin).post(
        "/api/v1/members/",
        {"email": "x@example.com", "role": "owner"},
        content_type="application/json",
    )
    assert answer.status_code == 403


def test_a_mail_server_that_fails_leaves_no_invitation(
    browser: BrowserFactory, admin: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr("accounts.services.invitations.send_mail", refuse)
    answer = browser(admin).post(
        "/api/v1/members/",
        {"email": "new@example.com", "role": "editor"},
        content_type="application/json",
    )
    assert answer.status_code == 502
    assert "nobody was invited" in answer.json()["detail"]
    assert not Invitation.unscoped.exists()
