"""/api/v1/members/: roles and the last owner."""

from __future__ import annotations

import pytest

from accounts.access import actor_for_member
from accounts.models import AuditEvent, Membership, Role
from accounts.services.tenants import change_role, remove_member
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, ForbiddenError
from tests.conftest import ApiFactory, BrowserFactory
from tests.factories import make_membership

URL = "/api/v1/members/"


def test_members_are_listed_without_strangers(
    api: ApiFactory, owner: Membership, viewer: Membership, stranger: Membership
) -> None:
    rows = api("admin").get(URL).json()["results"]
    assert {row["email"] for row in rows} == {owner.user.email, viewer.user.email}


def test_an_owner_promotes_and_it_is_written_down(
    browser: BrowserFactory, owner: Membership, viewer: Membership
) -> None:
    client = browser(owner)
    answer = client.patch(f"{URL}{viewer.id}/", {"role": "owner"}, content_type="application/json")
    assert answer.status_code == 200
    assert answer.json()["role"] == "owner"
    with tenant_scope(owner.tenant_id):
        event = AuditEvent.objects.get(action="member.role_changed")
    assert event.detail == {"from": "viewer", "to": "owner"}


def test_an_admin_cannot_touch_owners(
    browser: BrowserFactory, owner: Membership, admin: Membership
) -> None:
    client = browser(admin)
    for membership, role in ((owner, "viewer"), (admin, "owner")):
        answer = client.patch(
            f"{URL}{membership.id}/", {"role": role}, content_type="application/json"
        )
        assert answer.status_code == 403
    assert client.delete(f"{URL}{owner.id}/").status_code == 403


def test_the_last_owner_stays(owner: Membership) -> None:
    actor = actor_for_member(owner)
    with tenant_scope(owner.tenant_id):
        with pytest.raises(ConflictError):
            change_role(actor=actor, membership=owner, role=Role.ADMIN)
        with pytest.raises(ConflictError):
            remove_member(actor=actor, membership=owner)
    owner.refresh_from_db(from_queryset=Membership.unscoped.all())
    assert owner.role == Role.OWNER


def test_one_of_two_owners_may_go(owner: Membership) -> None:
    other = make_membership(tenant=owner.tenant, role=Role.OWNER)
    with tenant_scope(owner.tenant_id):
        remove_member(actor=actor_for_member(owner), membership=owner)
        assert [m.id for m in Membership.objects.all()] == [other.id]


def test_a_viewer_may_not_administer(viewer: Membership) -> None:
    with tenant_scope(viewer.tenant_id), pytest.raises(ForbiddenError):
        remove_member(actor=actor_for_member(viewer), membership=viewer)


def test_denied_events_can_be_listed_alone(api: ApiFactory, viewer: Membership) -> None:
    api("read").get(URL)
    client = api("admin")
    denied = client.get("/api/v1/audit-events/", {"denied": "true"}).json()["results"]
    assert [event["action"] for event in denied] == ["api.GET"]
    done = client.get("/api/v1/audit-events/", {"denied": "false"}).json()["results"]
    assert {event["action"] for event in done} == {"api_key.issued"}
    assert client.get("/api/v1/audit-events/", {"denied": "perhaps"}).status_code == 400
