"""Isolation, twice over: in Python and in PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import IntegrityError, ProgrammingError, connection, models, transaction

from accounts.models import ApiKey, AuditEvent, Membership, Tenant
from accounts.tenancy import (
    ROLE,
    TenantForeignKey,
    TenantModel,
    TenantScopeError,
    current_tenant_id,
    tenant_scope,
)
from tests.factories import make_key, make_tenant

TENANT_MODELS = [model for model in apps.get_models() if issubclass(model, TenantModel)]
REFERENCES = [
    (model, field)
    for model in TENANT_MODELS
    for field in model._meta.concrete_fields
    if isinstance(field, TenantForeignKey)
]


def rows(sql: str, *arguments: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())


@pytest.fixture
def two(db: None) -> tuple[Tenant, Tenant]:
    """Two tenants with a key each."""
    tenants = make_tenant(), make_tenant()
    for tenant in tenants:
        make_key(tenant=tenant)
    return tenants


def test_hand_written_sql_sees_one_tenant(two: tuple[Tenant, Tenant]) -> None:
    with tenant_scope(two[0].id):
        assert rows("SELECT DISTINCT tenant_id FROM accounts_apikey") == [(two[0].id,)]


def test_a_forgotten_filter_sees_one_tenant(two: tuple[Tenant, Tenant]) -> None:
    with tenant_scope(two[0].id):
        assert {key.tenant_id for key in ApiKey.unscoped.all()} == {two[0].id}


def test_without_a_scope_the_manager_refuses(db: None) -> None:
    with pytest.raises(TenantScopeError):
        ApiKey.objects.count()
    with pytest.raises(TenantScopeError):
        current_tenant_id()


def test_the_role_without_a_tenant_sees_nothing(two: tuple[Tenant, Tenant]) -> None:
    with transaction.atomic():
        rows("SELECT set_config('role', %s, true)", ROLE)
        assert rows("SELECT count(*) FROM accounts_apikey") == [(0,)]
        rows("SELECT set_config('role', 'none', true)")


def test_foreign_rows_can_be_neither_written_nor_changed(two: tuple[Tenant, Tenant]) -> None:
    foreign = ApiKey.unscoped.get(tenant_id=two[1].id)
    with tenant_scope(two[0].id):
        assert ApiKey.unscoped.filter(id=foreign.id).update(name="taken") == 0
        assert ApiKey.unscoped.filter(id=foreign.id).delete()[0] == 0
        with pytest.raises(TenantScopeError):
            foreign.save()
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            AuditEvent.objects.bulk_create([AuditEvent(tenant_id=two[1].id, actor="x", action="x")])


def test_scopes_of_two_tenants_do_not_nest(two: tuple[Tenant, Tenant]) -> None:
    with tenant_scope(two[0].id):
        with tenant_scope(two[0].id):
            assert current_tenant_id() == two[0].id
        with pytest.raises(TenantScopeError), tenant_scope(two[1].id):
            pass


def test_the_scope_ends_with_an_error_too(two: tuple[Tenant, Tenant]) -> None:
    with pytest.raises(ZeroDivisionError), tenant_scope(two[0].id):
        _ = 1 / 0
    assert rows("SELECT current_setting('app.tenant_id', true), current_user = session_user") in (
        [("", True)],
        [(None, True)],
    )


def test_the_role_is_weak(db: None) -> None:
    [(is_super, bypasses, logs_in)] = rows(
        "SELECT rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = %s", ROLE
    )
    assert (is_super, bypasses, logs_in) == (False, False, False)
    assert rows("SELECT count(*) FROM pg_tables WHERE tableowner = %s", ROLE) == [(0,)]


def test_the_role_may_use_every_table(db: None) -> None:
    closed = rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND NOT "
        "has_table_privilege(%s, format('%%I.%%I', schemaname, tablename), 'SELECT, INSERT')",
        ROLE,
    )
    assert closed == []


@pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model._meta.label)
def test_every_tenant_table_is_guarded(model: type[TenantModel], db: None) -> None:
    table = model._meta.db_table
    [(is_enabled,)] = rows("SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", table)
    assert is_enabled
    policies = rows("SELECT cmd, permissive, qual FROM pg_policies WHERE tablename = %s", table)
    assert [policy[:2] for policy in policies] == [("ALL", "PERMISSIVE")]
    assert "tenant_id = " in policies[0][2]
    assert "app.tenant_id" in policies[0][2]
    assert _columns(table, "p") == [(["tenant_id", "id"], None, None, None)]


@pytest.mark.parametrize(
    ("model", "field"), REFERENCES, ids=lambda value: getattr(value, "name", None)
)
def test_every_reference_stays_in_its_tenant(
    model: type[TenantModel], field: models.ForeignKey[Any, Any], db: None
) -> None:
    parent = field.related_model._meta.db_table
    expected = (["tenant_id", field.column], parent, ["tenant_id", "id"], "c")
    assert expected in _columns(model._meta.db_table, "f")


def _columns(table: str, kind: str) -> list[tuple[Any, ...]]:
    names = (
        "(SELECT array_agg(attname::text ORDER BY place) FROM unnest({keys}) WITH ORDINALITY "
        "AS k(number, place) JOIN pg_attribute ON attnum = number AND attrelid = {table})"
    )
    own = names.format(keys="conkey", table="conrelid")
    theirs = names.format(keys="confkey", table="confrelid")
    return rows(
        f"SELECT {own}, nullif(confrelid, 0)::regclass::text, {theirs}, nullif(confdeltype, ' ') "
        "FROM pg_constraint WHERE conrelid = %s::regclass AND contype = %s",
        table,
        kind,
    )


def test_a_tenant_model_is_no_plain_foreign_key(db: None) -> None:
    plain = [
        (model._meta.label, field.name)
        for model in TENANT_MODELS
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey)
        and not isinstance(field, TenantForeignKey)
        and issubclass(field.related_model, TenantModel)
    ]
    assert plain == []


def test_one_membership_a_person(owner: Membership) -> None:
    with pytest.raises(IntegrityError), tenant_scope(owner.tenant_id):
        Membership.objects.create(user=owner.user)


def test_ids_are_ordered_by_time(two: tuple[Tenant, Tenant]) -> None:
    assert two[0].id < two[1].id
    assert isinstance(two[0].id, UUID)
    assert two[0].id.version == 7
