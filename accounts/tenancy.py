"""What makes a table belong to a tenant: the scope, the model base, the foreign key and the SQL behind them.

Isolation holds twice. In Python, `objects` of a tenant model answers only inside `tenant_scope` and
names the tenant in every query. In PostgreSQL, the scope's transaction runs as a role that cannot
bypass row-level security, so even hand-written SQL sees one tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.db import connection, models, transaction
from django.db.migrations.operations import RunSQL
from uuid_utils.compat import uuid7

ROLE = "groundwork_app"

_current: ContextVar[UUID | None] = ContextVar("tenant_id", default=None)


class TenantScopeError(RuntimeError):
    """Tenant data was asked for outside a tenant's scope, or a scope was opened inside another's."""


def new_id() -> UUID:
    """A UUIDv7: unique everywhere and ordered by time."""
    return uuid7()


def current_tenant_id() -> UUID:
    """The tenant of the present scope. Raises `TenantScopeError` outside of one."""
    tenant_id = _current.get()
    if tenant_id is None:
        raise TenantScopeError("Tenant data is reachable only inside tenant_scope(…).")
    return tenant_id


@contextmanager
def tenant_scope(tenant_id: UUID, *, durable: bool = True) -> Iterator[None]:
    """A transaction that sees one tenant. May be nested for the same tenant.

    Without `durable` the end does not wait for the disk: what it wrote may be lost when the database
    server dies within the next second.
    """
    outer = _current.get()
    if outer is not None:
        if outer != tenant_id:
            raise TenantScopeError("A tenant's scope cannot be opened inside another tenant's.")
        with transaction.atomic():
            yield
        return
    nested = connection.in_atomic_block
    with transaction.atomic():
        _enter(tenant_id, durable=durable)
        token = _current.set(tenant_id)
        try:
            yield
        finally:
            # Before the commit, whose hooks stand outside the scope.
            _current.reset(token)
        if nested:
            _leave()


def _enter(tenant_id: UUID, *, durable: bool) -> None:
    # One round trip: a scope is opened several times a request.
    relaxed = "" if durable else ", set_config('synchronous_commit', 'off', true)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT set_config('app.tenant_id', %s, true), set_config('role', %s, true){relaxed}",
            [str(tenant_id), ROLE],
        )


def _leave() -> None:
    # SET LOCAL lasts until the outermost transaction ends, which is a caller's.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('role', 'none', true), set_config('app.tenant_id', '', true)"
        )


class TenantManager(models.Manager[Any]):
    """Rows of the present scope's tenant, and of no other."""

    use_in_migrations = False

    def get_queryset(self) -> models.QuerySet[Any]:
        """Every query names its tenant."""
        return super().get_queryset().filter(tenant_id=current_tenant_id())


class TenantModel(models.Model):
    """Base of every tenant-owned table. The database key is `(tenant_id, id)`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        "accounts.Tenant",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        editable=False,
        related_name="+",
    )

    # For authentication and the operator, who stand outside every tenant.
    unscoped = models.Manager()
    objects = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"
        default_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Takes the scope's tenant on creation and refuses another one ever after."""
        present: UUID | None = self.tenant_id
        if present is None:
            self.tenant_id = current_tenant_id()
        elif present != current_tenant_id():
            raise TenantScopeError("A row cannot be written from another tenant's scope.")
        super().save(*args, **kwargs)


class TenantForeignKey(models.ForeignKey):  # type: ignore[type-arg]
    """A reference inside one tenant. The constraint is `(tenant_id, x_id)` with ON DELETE CASCADE in the
    database (see `tenant_table`), so Django neither creates one of its own nor collects rows to delete."""

    def __init__(self, to: Any, on_delete: Any = models.DO_NOTHING, **kwargs: Any) -> None:
        kwargs["db_constraint"] = False
        kwargs.setdefault("db_index", False)
        super().__init__(to, on_delete, **kwargs)


def tenant_table(table: str, references: Mapping[str, str] | None = None) -> RunSQL:
    """The migration step that makes `table` a tenant table: composite key, composite foreign keys
    (`references`: column → referenced table) with an index each, row-level security."""
    forward = [
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY (tenant_id, id)",
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        (
            f"CREATE POLICY tenant ON {table} USING "
            "(tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid)"
        ),
    ]
    for column, parent in (references or {}).items():
        forward += [
            (
                f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fk FOREIGN KEY "
                f"(tenant_id, {column}) REFERENCES {parent} (tenant_id, id) ON DELETE CASCADE"
            ),
            f"CREATE INDEX {table}_{column}_ix ON {table} (tenant_id, {column})",
        ]
    backward = [
        *(f"DROP INDEX {table}_{column}_ix" for column in references or {}),
        *(
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_fk"
            for column in references or {}
        ),
        f"DROP POLICY tenant ON {table}",
        f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY (id)",
    ]
    return RunSQL(tuple(forward), tuple(backward))
