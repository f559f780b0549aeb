"""A large base's own index on the vectors that search does not read (yet, or any more)."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from knowledge.services.base_indexes import build_index, drop_index, index_name, is_large


def prepare_spare_index(tenant_id: UUID, base_id: UUID, field: str) -> bool:
    """Build the index that search will use after the switch; True if the base has it or needs none,
    False while another process builds one. Call it outside of any transaction; it may take minutes."""
    return not is_large(tenant_id, base_id) or build_index(tenant_id, base_id, field)


def drop_spare_index(tenant_id: UUID, base_id: UUID, field: str) -> None:
    """Remove the index before the field is emptied: it takes vectors of one length only. Call it outside
    of any transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [index_name(base_id, field)])
        (exists,) = cursor.fetchone()
    if exists:
        drop_index(tenant_id, base_id, field)
