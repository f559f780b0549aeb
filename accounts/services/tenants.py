"""Founding tenants and keeping their members."""

from __future__ import annotations

from django.db import transaction
from django.utils.text import slugify

from accounts.access import Action, Actor
from accounts.models import Membership, Role, Tenant, User
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, ForbiddenError


def found_tenant(*, name: str, owner: User, slug: str = "") -> Tenant:
    """A new tenant whose owner is `owner`."""
    wanted = slug or slugify(name, allow_unicode=True)[:90] or "tenant"
    if slug and Tenant.objects.filter(slug=slug).exists():
        raise ConflictError(f"There is a tenant “{slug}” already.")
    with transaction.atomic():
        tenant = Tenant.objects.create(name=name.strip() or wanted, slug=_free_slug(wanted))
        with tenant_scope(tenant.id):
            Membership.objects.create(user=owner, role=Role.OWNER)
    if not owner.is_staff:
        owner.is_staff = True  # the admin is open to members; what they see is decided per tenant
        owner.save(update_fields=["is_staff"])
    return tenant


def memberships_of(user: User) -> list[Membership]:
    """Every tenant a person belongs to, by name. Runs before a tenant is chosen."""
    rows = Membership.unscoped.filter(user=user).select_related("tenant", "user")
    return list(rows.order_by("tenant__name"))


def change_role(*, actor: Actor, membership: Membership, role: str) -> None:
    """Give a member another role. Only owners make owners, and the last owner stays one."""
    actor.require(Action.ADMIN)
    _guard_owners(actor, membership, role)
    before, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    record_event(
        actor, "member.role_changed", target=membership.user.email, target_id=membership.id,
        detail={"from": before, "to": role},
    )  # fmt: skip


def remove_member(*, actor: Actor, membership: Membership) -> None:
    """End a membership; the person and other tenants are untouched."""
    actor.require(Action.ADMIN)
    _guard_owners(actor, membership, None)
    email, row_id = membership.user.email, membership.id
    membership.delete()
    record_event(actor, "member.removed", target=email, target_id=row_id)


def _guard_owners(actor: Actor, membership: Membership, role: str | None) -> None:
    if Role.OWNER in {role, membership.role} and not actor.is_owner:
        raise ForbiddenError("Only an owner changes owners.")
    if membership.role == Role.OWNER and role != Role.OWNER:
        # The lock makes two owners who leave at the same time take turns.
        owners = list(Membership.objects.select_for_update().filter(role=Role.OWNER))
        if len(owners) == 1:
            raise ConflictError("A tenant needs an owner: make someone else an owner first.")


def _free_slug(wanted: str) -> str:
    taken = set(Tenant.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    number, slug = 1, wanted
    while slug in taken:
        number += 1
        slug = f"{wanted}-{number}"
    return slug
