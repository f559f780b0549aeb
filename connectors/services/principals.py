"""Who may read what comes from a connection, and who is in which of its groups.

Groups of a source live in a name space of their connection: `group:eng` of one source is not `group:eng` of
another one, nor one that an administrator has written into a document. People are the same everywhere: by
their mail address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connection as database

from accounts.access import PUBLIC
from accounts.tenancy import current_tenant_id
from connectors.base import Capability, Connector, Membership, Record
from connectors.models import Connection, GroupMembership

_GROUPS = """
WITH RECURSIVE reached(name) AS (
    SELECT unnest(%s::varchar[])
    UNION
    SELECT m."group" FROM connectors_groupmembership m JOIN reached r ON m.member = r.name
    WHERE m.tenant_id = %s
)
SELECT name FROM reached
"""


def readers_of(
    connection: Connection, connector: type[Connector[Any]], record: Record
) -> list[str]:
    """The principals of a record's document. Where the source promises permissions and gives none for a
    record, nobody reads it."""
    if connection.access != Connection.Access.SOURCE:
        return sorted(connection.principals)
    if record.principals is None:
        promises = Capability.ACCESS_CONTROL in connector.capabilities()
        return [] if promises else sorted(connection.principals)
    if connector.names_are_the_tenants:
        return sorted(record.principals)
    return sorted({in_name_space(connection, one) for one in record.principals})


def in_name_space(connection: Connection, principal: str) -> str:
    """A principal of a source as the whole tenant knows it."""
    kind, _, name = principal.partition(":")
    if kind == "group":
        return f"group:{connection.connector}:{connection.id.hex[:12]}:{name}"[:300]
    return principal if principal == PUBLIC else f"user:{name.strip().lower()}"[:300]


def replace_memberships(connection: Connection, memberships: Iterable[Membership]) -> int:
    """Make these the connection's memberships, in the present transaction. Returns how many changed."""
    wanted = {
        (in_name_space(connection, one.group), in_name_space(connection, one.member))
        for one in memberships
    }
    known = {
        (row.group, row.member): row.id
        for row in GroupMembership.objects.filter(connection=connection)
    }
    gone = [known[pair] for pair in known.keys() - wanted]
    new = [
        GroupMembership(
            tenant_id=connection.tenant_id, connection=connection, group=group, member=member
        )
        for group, member in sorted(wanted - known.keys())
    ]
    GroupMembership.objects.filter(id__in=gone).delete()
    GroupMembership.objects.bulk_create(new, batch_size=1000)
    return len(gone) + len(new)


def with_groups(principals: Collection[str]) -> frozenset[str]:
    """The principals and every group they are in, groups of groups too, as of now."""
    people = [one for one in principals if one != PUBLIC]
    if not people:
        return frozenset(principals)
    with database.cursor() as cursor:
        cursor.execute(_GROUPS, [people, current_tenant_id()])
        return frozenset(principals) | {row[0] for row in cursor.fetchall()}
