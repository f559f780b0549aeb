"""What ranking needs to know of passages and their documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from accounts.tenancy import current_tenant_id
from search.retrieval.searchable import Searchable

_TIME = "COALESCE(d.source_updated_at, d.source_created_at, d.created_at)"
_FACTS = f"""
SELECT c.id, c.document_id, c.knowledge_base_id, c.fingerprint, c.language, d.boost, d.source,
       {_TIME}
FROM knowledge_chunk c JOIN knowledge_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id
WHERE c.tenant_id = %s AND c.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What ranking needs to know of a passage."""

    document_id: UUID
    knowledge_base_id: UUID
    fingerprint: int
    language: str
    boost: float
    source: str
    time: datetime


def read_facts(chunk_ids: Sequence[UUID]) -> dict[UUID, Facts]:
    """The facts of those passages that exist, in the scope of their tenant."""
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, [current_tenant_id(), list(chunk_ids)])
        return {row[0]: Facts(*row[1:]) for row in cursor.fetchall()}


def time_range(searchable: Searchable) -> tuple[datetime, datetime] | None:
    """The times of the oldest and newest document that the scope may see and the filter admits."""
    source, where, parameters = searchable.sql(join_document=True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min({_TIME}), max({_TIME}) FROM {source} WHERE {where}", parameters)
        oldest, newest = cursor.fetchone()
    return (oldest, newest) if oldest is not None else None
