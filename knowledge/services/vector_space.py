"""Which model a base's vectors are of, and that it stays so while they are written.

A base may change its model while documents are being ingested. Whoever writes vectors says for which
space they were computed and holds that space until the transaction ends; the switch waits for them,
and whoever comes after it sees the new space. An advisory lock keeps this apart from the row of the
base, which other work updates in long transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from accounts.tenancy import current_tenant_id
from knowledge.models import Chunk, KnowledgeBase

_SPACE_LOCK = 7_205_002  # names our advisory lock beside a base's id
_LONGEST_WAIT = "500ms"  # under PostgreSQL's deadlock_timeout of 1 s
_WRITE = """
UPDATE knowledge_chunk SET {field} = %s::halfvec
WHERE tenant_id = %s AND id = %s AND {field} IS NULL AND edited_at IS NOT DISTINCT FROM %s::timestamptz
"""


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The embedding model of a base and the chunk field that holds its vectors."""

    base_id: UUID
    model: str
    field: str

    @property
    def spare_field(self) -> str:
        """The other vector field."""
        return KnowledgeBase(embedding_field=self.field).spare_field


def find_space(base_id: UUID) -> VectorSpace | None:
    """The space that search reads at this moment; None for a base that is gone."""
    values = KnowledgeBase.objects.filter(id=base_id).values_list(
        "embedding_model", "embedding_field"
    )
    found = values.first()
    return VectorSpace(base_id, *found) if found else None


def hold_space(base_id: UUID) -> VectorSpace | None:
    """The same, and it stays so until the present transaction ends. Take it before any row is locked."""
    _lock("pg_advisory_xact_lock_shared", base_id)
    return find_space(base_id)


def lock_space(base_id: UUID) -> None:
    """Keep everyone from writing vectors for search until the present transaction ends."""
    _lock("pg_advisory_xact_lock", base_id)


def yield_to_others() -> None:
    """Let the present transaction fail rather than another one, should their row locks cross.

    Raises `OperationalError` from the statement that has waited too long.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [_LONGEST_WAIT])


def lacking(base_id: UUID, field: str) -> QuerySet[Chunk]:
    """The chunks of a base that have no vector in a field."""
    chunks: QuerySet[Chunk] = Chunk.objects.filter(knowledge_base_id=base_id, **{field: None})
    return chunks


def write_vectors(field: str, chunks: Sequence[Chunk], vectors: Sequence[Sequence[float]]) -> int:
    """Fill a vector field of chunks as they were read (`edited_at` among what was loaded); returns how
    many that were. One that has a vector by now, or another text, is left as it is."""
    tenant_id = current_tenant_id()
    rows = [
        (str(list(vector)), tenant_id, chunk.id, chunk.edited_at)
        # In one order everywhere, so that row locks do not cross.
        for chunk, vector in sorted(zip(chunks, vectors, strict=True), key=lambda pair: pair[0].id)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE.format(field=field), rows)
        written: int = cursor.rowcount
    return written


def empty_some(base_id: UUID, field: str, after: UUID | None, most: int) -> UUID | None:
    """Empty a vector field of up to `most` chunks in the order of their ids, from `after` on. Returns
    the last id, or None when nothing was left."""
    held = Chunk.objects.filter(knowledge_base_id=base_id).exclude(**{field: None})
    if after is not None:
        held = held.filter(id__gt=after)
    locked = held.order_by("id").select_for_update(no_key=True)
    ids: list[UUID] = list(locked.values_list("id", flat=True)[:most])
    Chunk.objects.filter(id__in=ids).update(**{field: None})
    return ids[-1] if ids else None


def _lock(function: str, base_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, hashtext(%s))", [_SPACE_LOCK, str(base_id)])
