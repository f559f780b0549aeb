"""A large base's own indexes: one for its words, one for its vectors.

A small base is read through on every search: exact, and as fast as an index. Beyond `LARGE` chunks it gets
partial indexes of its own, so that neither its neighbours' size nor their words cost it anything. They are
built concurrently: searching and ingesting go on meanwhile, and search uses an index once it is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase, LengthStatistic
from knowledge.services.statistics import corpus_statistics

logger = logging.getLogger(__name__)

LARGE = 8_000  # chunks; where reading through and the indexes take equally long (`make bench`)
SMALL = LARGE // 4  # below it a base gives its indexes up
WORDS = "lexemes"
_BUILD_LOCK = 7_205_003  # names our advisory lock beside a base's id
_MAX_DIMENSIONS = 4_000  # of an HNSW index on half-precision vectors
_PREFIX = "own_"
# With pgvector's 64 the ten best of 100,000 were found to 98.6 %, with 128 to 99.5 %, at twice the build.
# Dense, for passages come in clusters (versions, forms) that a thinner graph may fail to enter: on 100,000
# chunks in 1,500 clusters recall@10 with 300 steps is 0.957 with (16, 128), 0.979 with (24, 128), 0.998 so.
_GRAPH = "WITH (m = 32, ef_construction = 200)"


def index_name(base_id: UUID, column: str) -> str:
    """The name of a base's index on a column; PostgreSQL allows 63 characters."""
    return f"{_PREFIX}{column}_{base_id.hex}"


def maintain_indexes(tenant_id: UUID, base_id: UUID) -> list[str]:
    """Bring the indexes of a base in line with its size; returns the columns that have one. Call it
    outside of any transaction. When another process is at it, nothing is done."""
    with tenant_scope(tenant_id):
        base = KnowledgeBase.objects.filter(id=base_id).first()
        size = corpus_statistics([base_id]).chunks if base else 0
    if base is None:
        return []
    if size >= LARGE:
        for column in (WORDS, base.embedding_field):
            build_index(tenant_id, base_id, column)
    elif size < SMALL and base.own_indexes:
        drop_indexes(tenant_id, base)
    with tenant_scope(tenant_id):
        return list(KnowledgeBase.objects.values_list("own_indexes", flat=True).get(id=base_id))


def bases_out_of_line() -> list[tuple[UUID, UUID]]:
    """Tenant and id of the bases that have grown large without indexes, or shrunk with them."""
    sizes = LengthStatistic.unscoped.values("knowledge_base_id").annotate(size=Sum("chunks"))
    size_of = {row["knowledge_base_id"]: row["size"] for row in sizes}
    bases = KnowledgeBase.unscoped.values_list("tenant_id", "id", "own_indexes", "embedding_field")
    return [
        (tenant_id, base_id)
        for tenant_id, base_id, columns, field in bases
        if (size_of.get(base_id, 0) >= LARGE and not {WORDS, field} <= set(columns))
        or (size_of.get(base_id, 0) < SMALL and columns)
    ]


def is_large(tenant_id: UUID, base_id: UUID) -> bool:
    """Whether a base is of a size to have indexes of its own."""
    with tenant_scope(tenant_id):
        return corpus_statistics([base_id]).chunks >= LARGE


def build_index(tenant_id: UUID, base_id: UUID, column: str) -> bool:
    """Make sure that a base has a usable index on `lexemes` or a vector field; returns whether it has.
    Minutes for millions of chunks. A half-built one that a crash left behind is built anew."""
    name = index_name(base_id, column)
    with _alone(base_id) as alone:
        if not alone:
            return False
        definition = _definition(base_id, column)
        if definition is None:
            return False
        state = _state(name)
        if state is False:
            _drop(name)
        if state is not True:
            _build(name, definition)
        _record(tenant_id, base_id, column)
    return True


def drop_indexes(tenant_id: UUID, base: KnowledgeBase) -> None:
    """Remove a base's indexes; it is read through from now on."""
    columns = list(base.own_indexes)
    with tenant_scope(tenant_id):
        KnowledgeBase.objects.filter(id=base.id).update(own_indexes=[])
    for column in columns:
        _drop(index_name(base.id, column))


def drop_index(tenant_id: UUID, base_id: UUID, column: str) -> None:
    """Remove one index of a base, such as that of vectors which are given up."""
    with tenant_scope(tenant_id):
        base = KnowledgeBase.objects.select_for_update().filter(id=base_id).first()
        if base is not None and column in base.own_indexes:
            base.own_indexes = [kept for kept in base.own_indexes if kept != column]
            base.save(update_fields=["own_indexes"])
    _drop(index_name(base_id, column))


def drop_orphans() -> int:
    """Remove the indexes of bases that are gone; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename = 'knowledge_chunk' "
            "AND schemaname = current_schema() AND indexname LIKE %s",
            [_PREFIX.replace("_", r"\_") + "%"],
        )
        names = [row[0] for row in cursor.fetchall()]
    held = {base_id.hex for base_id in KnowledgeBase.unscoped.values_list("id", flat=True)}
    orphans = [name for name in names if name.rsplit("_", 1)[1] not in held]
    for name in orphans:
        _drop(name)
    return len(orphans)


def _definition(base_id: UUID, column: str) -> str | None:
    """The part of CREATE INDEX after the table; None where there is nothing to index yet."""
    # An identifier and a literal cannot be parameters here; the id is a UUID and the column ours.
    condition = f"WHERE knowledge_base_id = '{base_id}' AND live AND enabled"
    if column == WORDS:
        return f"USING gin (lexemes) {condition}"
    size = _dimensions(base_id, KnowledgeBase.EmbeddingField(column))
    if size is None or size > _MAX_DIMENSIONS:
        return None
    return f"USING hnsw (({column}::halfvec({size})) halfvec_cosine_ops) {_GRAPH} {condition}"


def _dimensions(base_id: UUID, field: KnowledgeBase.EmbeddingField) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT vector_dims({field.value}) FROM knowledge_chunk "  # noqa: S608 - one of two fields
            f"WHERE knowledge_base_id = %s AND {field.value} IS NOT NULL LIMIT 1",
            [base_id],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def _state(name: str) -> bool | None:
    """Whether an index is complete; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = to_regclass(%s)",
            [name],
        )
        row = cursor.fetchone()
    return row[0] if row else None


def _build(name: str, definition: str) -> None:
    logger.info("Building the index %s", name)
    with connection.cursor() as cursor:
        # An HNSW graph that does not fit into memory is built many times slower.
        cursor.execute("SET maintenance_work_mem = '1GB'")
        try:
            cursor.execute(f"CREATE INDEX CONCURRENTLY {name} ON knowledge_chunk {definition}")
        finally:
            cursor.execute("RESET maintenance_work_mem")


def _record(tenant_id: UUID, base_id: UUID, column: str) -> None:
    with tenant_scope(tenant_id):
        base = KnowledgeBase.objects.select_for_update().filter(id=base_id).first()
        if base is not None and column not in base.own_indexes:
            base.own_indexes = sorted({*base.own_indexes, column})
            base.save(update_fields=["own_indexes"])


def _drop(name: str) -> None:
    if _state(name) is not None:  # the statement is refused inside a transaction, needed or not
        with connection.cursor() as cursor:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


@contextmanager
def _alone(base_id: UUID) -> Iterator[bool]:
    """A lock of this session for building indexes of a base; False when another holds it."""
    key: tuple[int, str] = (_BUILD_LOCK, str(base_id))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", key)
        held = cursor.fetchone()[0]
        try:
            yield held
        finally:
            if held:
                cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)
