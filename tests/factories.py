"""Makes what tests need. Every argument has a valid default; names count up, so nothing collides."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from allauth.account.models import EmailAddress

from accounts.access import operator_actor
from accounts.models import ApiKey, Membership, Role, Scope, Tenant, User
from accounts.services.api_keys import issue_key
from accounts.tenancy import tenant_scope

PASSWORD = "correct horse battery"

_numbers = itertools.count(1)


def make_user(*, email: str = "", is_superuser: bool = False) -> User:
    """A person with a confirmed address and the password `PASSWORD`."""
    user = User.objects.create_user(
        email or f"person{next(_numbers)}@example.com", PASSWORD, is_superuser=is_superuser
    )
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def make_tenant(*, name: str = "") -> Tenant:
    """A tenant without members."""
    number = next(_numbers)
    return Tenant.objects.create(name=name or f"Tenant {number}", slug=f"tenant-{number}")


def make_membership(
    *,
    tenant: Tenant | None = None,
    role: Role = Role.VIEWER,
    email: str = "",
    user: User | None = None,
) -> Membership:
    """A person in a tenant."""
    tenant = tenant or make_tenant()
    user = user or make_user(email=email)
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    with tenant_scope(tenant.id):
        membership: Membership = Membership.objects.create(tenant=tenant, user=user, role=role)
    return membership


def make_key(
    *,
    tenant: Tenant | None = None,
    scopes: Sequence[str] = (Scope.ADMIN,),
    name: str = "test",
    knowledge_base_ids: Sequence[UUID] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A key and its text."""
    tenant = tenant or make_tenant()
    with tenant_scope(tenant.id):
        return issue_key(
            actor=operator_actor(tenant.id),
            name=name,
            scopes=scopes,
            knowledge_base_ids=knowledge_base_ids,
            expires_at=expires_at,
        )
