"""The admin: open to those whose role allows it, writing through services."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, AuditEvent, Invitation, Membership, Role, Tenant
from accounts.services.api_keys import find_valid_key
from accounts.tenancy import tenant_scope
from tests.conftest import BrowserFactory
from tests.factories import make_key, make_membership, make_user

MODELS = ("apikey", "membership", "invitation", "auditevent")
LISTS = [f"/admin/accounts/{model}/" for model in MODELS]
FORMS = ["/admin/accounts/apikey/add/", "/admin/accounts/invitation/add/"]


def content(answer: Any) -> str:
    return str(answer.content.decode())


@pytest.mark.parametrize("path", [*LISTS, *FORMS])
def test_an_admin_opens_every_page(path: str, browser: BrowserFactory, admin: Membership) -> None:
    make_key(tenant=admin.tenant)
    assert browser(admin).get(path).status_code == 200


@pytest.mark.parametrize("path", [*LISTS, *FORMS])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
def test_others_are_refused_and_it_is_written_down(
    path: str, role: Role, browser: BrowserFactory, owner: Membership
) -> None:
    person = make_membership(tenant=owner.tenant, role=role)
    assert browser(person).get(path).status_code == 403
    with tenant_scope(owner.tenant_id):
        event = AuditEvent.objects.get(denied=True)
    assert (event.actor, event.target) == (person.user.email, path)


def test_details_open_and_foreign_ones_do_not(
    browser: BrowserFactory, admin: Membership, stranger: Membership
) -> None:
    key, _ = make_key(tenant=admin.tenant)
    foreign, _ = make_key(tenant=stranger.tenant)
    client = browser(admin)
    assert client.get(f"/admin/accounts/apikey/{key.id}/change/").status_code == 200
    pages = [
        client.get(f"/admin/accounts/apikey/{identity}/change/")
        for identity in (foreign.id, uuid4())
    ]
    assert [page.status_code for page in pages] == [302, 302]
    assert foreign.prefix not in content(client.get("/admin/accounts/apikey/"))


def test_a_key_is_shown_once(browser: BrowserFactory, admin: Membership) -> None:
    answer = browser(admin).post(
        "/admin/accounts/apikey/add/", {"name": "bot", "scopes": ["read", "search"]}
    )
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    text = answer.context["text"]
    assert text in content(answer)
    key = find_valid_key(text)
    assert key is not None
    assert (key.name, key.scopes, key.knowledge_base_ids) == ("bot", ["read", "search"], None)
    assert LogEntry.objects.get().object_id == str(key.id)


def test_keys_are_revoked_from_the_list(browser: BrowserFactory, admin: Membership) -> None:
    key, text = make_key(tenant=admin.tenant)
    client = browser(admin)
    answer = client.post(
        "/admin/accounts/apikey/", {"action": "revoke", "_selected_action": [str(key.id)]}
    )
    assert answer.status_code == 302
    assert find_valid_key(text) is None
    assert client.post(f"/admin/accounts/apikey/{key.id}/delete/").status_code == 403


def test_roles_change_through_the_service(
    browser: BrowserFactory, owner: Membership, viewer: Membership
) -> None:
    url = reverse("admin:accounts_membership_change", args=[viewer.id])
    assert browser(owner).post(url, {"role": "editor"}).status_code == 302
    with tenant_scope(owner.tenant_id):
        assert Membership.objects.get(id=viewer.id).role == "editor"
        event = AuditEvent.objects.get(action="member.role_changed")
    assert event.detail == {"from": "viewer", "to": "editor"}


@pytest.mark.parametrize("path", ["change", "delete"])
def test_the_last_owner_stays(path: str, browser: BrowserFactory, owner: Membership) -> None:
    client = browser(owner)
    url = f"/admin/accounts/membership/{owner.id}/{path}/"
    answer = client.post(url, {"role": "viewer", "post": "yes"}, follow=True)
    assert "A tenant needs an owner" in content(answer)
    with tenant_scope(owner.tenant_id):
        assert Membership.objects.get(id=owner.id).role == Role.OWNER
    assert not LogEntry.objects.exists()


def test_members_are_removed(
    browser: BrowserFactory, owner: Membership, viewer: Membership
) -> None:
    url = f"/admin/accounts/membership/{viewer.id}/delete/"
    assert browser(owner).post(url, {"post": "yes"}).status_code == 302
    with tenant_scope(owner.tenant_id):
        assert not Membership.objects.filter(id=viewer.id).exists()


def test_invitations_are_sent_sent_again_and_withdrawn(
    browser: BrowserFactory,
    admin: Membership,
    mailoutbox: list[Any],
    django_capture_on_commit_callbacks: Any,
) -> None:
    client = browser(admin)
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/admin/accounts/invitation/add/", {"email": "n@example.com", "role": "viewer"})
    invitation = Invitation.unscoped.get()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            "/admin/accounts/invitation/",
            {"action": "send_again", "_selected_action": [str(invitation.id)]},
        )
    assert len(mailoutbox) == 2
    assert mailoutbox[0].body != mailoutbox[1].body
    client.post(f"/admin/accounts/invitation/{invitation.id}/delete/", {"post": "yes"})
    assert not Invitation.unscoped.exists()


def test_an_admin_cannot_invite_an_owner(browser: BrowserFactory, admin: Membership) -> None:
    form = {"email": "n@example.com", "role": "owner"}
    assert browser(admin).post("/admin/accounts/invitation/add/", form).status_code == 403
    assert not Invitation.unscoped.exists()


@pytest.mark.parametrize("path", ["/admin/accounts/tenant/", "/admin/accounts/user/"])
def test_the_installation_is_for_operators(
    path: str, browser: BrowserFactory, owner: Membership, stranger: Membership
) -> None:
    assert browser(owner).get(path).status_code == 403
    operator = make_membership(tenant=owner.tenant, user=make_user(is_superuser=True))
    page = browser(operator).get(path)
    assert page.status_code == 200
    row = stranger.tenant if "tenant" in path else stranger.user
    assert browser(operator).get(f"{path}{row.pk}/change/").status_code == 200


def test_an_operator_renames_a_tenant(browser: BrowserFactory, owner: Membership) -> None:
    operator = make_membership(tenant=owner.tenant, user=make_user(is_superuser=True))
    url = f"/admin/accounts/tenant/{owner.tenant_id}/change/"
    assert browser(operator).post(url, {"name": "Acme Ltd"}).status_code == 302
    assert Tenant.objects.get(id=owner.tenant_id).name == "Acme Ltd"


def test_the_superuser_flag_opens_no_tenant_data(
    browser: BrowserFactory, owner: Membership
) -> None:
    operator = make_membership(tenant=owner.tenant, user=make_user(is_superuser=True))
    assert browser(operator).get("/admin/accounts/apikey/").status_code == 403


def test_strangers_are_sent_to_the_one_login(db: None) -> None:
    answer = Client().get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/accounts/login/?next=%2Fadmin%2F"


def test_an_admin_page_leaves_no_scope_behind(browser: BrowserFactory, admin: Membership) -> None:
    browser(admin).get("/admin/accounts/apikey/")
    assert ApiKey.unscoped.count() == 0
