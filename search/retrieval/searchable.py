"""What every leg looks through: tenant, bases, permissions and filter, in SQL over `c` and `d`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection

from search.access import AccessScope
from search.retrieval.filters import Condition

FEW_DOCUMENTS = 2_000  # a filter that leaves no more is answered from these documents, exactly
_FEW_PRINCIPALS = 8  # PostgreSQL compares lists pairwise: 1,000 principals cost 30 µs a row
_JOIN = " JOIN knowledge_document d ON d.tenant_id = c.tenant_id AND d.id = c.document_id"
# As a scalar a condition on the document is looked up row by row; a join would be turned around and
# would lose the order that a vector index gives.
_LOOKUP = (
    "(SELECT {} FROM knowledge_document d WHERE d.tenant_id = c.tenant_id AND d.id = c.document_id)"
)
_OVERLAP = "c.principals && %s::varchar[]"
_HASHED_OVERLAP = (
    "CASE WHEN 'public' = ANY(c.principals) THEN %s ELSE EXISTS "
    "(SELECT 1 FROM unnest(c.principals) entry WHERE entry = ANY(%s::varchar[])) END"
)


@dataclass(frozen=True, slots=True)
class Searchable:
    """The chunks of some bases that a scope may see and a filter admits."""

    scope: AccessScope
    base_ids: tuple[UUID, ...]
    condition: Condition | None = None
    document_ids: tuple[UUID, ...] | None = None  # the documents that the condition leaves, if few

    def within(self, base_ids: Sequence[UUID]) -> Searchable:
        """The same in fewer bases."""
        return replace(self, base_ids=tuple(base_ids))

    @property
    def needs_document(self) -> bool:
        """Whether the condition looks at the document's own columns."""
        return self.condition is not None and self.condition.on_document

    def sql(self, *, join_document: bool = False) -> tuple[str, str, list[Any]]:
        """`FROM` and `WHERE` with the parameters of the latter, for reading chunks one and all."""
        joined = join_document or self.needs_document
        where, parameters = self._where()
        if self.condition is not None:
            where += f" AND {self.condition.sql}"
            parameters += self.condition.parameters
        return "knowledge_chunk c" + (_JOIN if joined else ""), where, parameters

    def sql_in_order(self) -> tuple[str, str, list[Any]]:
        """The same for reading chunks in the order of an index until there are enough."""
        where, parameters = self._where()
        if self.condition is not None:
            test = self.condition.sql
            where += f" AND {_LOOKUP.format(test) if self.needs_document else test}"
            parameters += self.condition.parameters
        return "knowledge_chunk c", where, parameters

    def _where(self) -> tuple[str, list[Any]]:
        # A base by itself is named plainly, so that PostgreSQL recognises the base's own indexes.
        only = self.base_ids[0] if len(self.base_ids) == 1 else None
        bases = "c.knowledge_base_id = %s" if only else "c.knowledge_base_id = ANY(%s)"
        permitted, principals = self._permitted()
        where = f"c.tenant_id = %s AND {bases} AND c.live AND c.enabled AND {permitted}"
        parameters: list[Any] = [self.scope.tenant_id, only or list(self.base_ids), *principals]
        if self.document_ids is not None:
            where += " AND c.document_id = ANY(%s)"
            parameters.append(list(self.document_ids))
        return where, parameters

    def _permitted(self) -> tuple[str, list[Any]]:
        principals = list(self.scope.principals)
        if len(principals) <= _FEW_PRINCIPALS:
            return _OVERLAP, [principals]
        return _HASHED_OVERLAP, ["public" in principals, principals]


def narrowed(searchable: Searchable) -> Searchable:
    """With the documents that the condition leaves, when it looks at documents only and leaves few."""
    condition = searchable.condition
    if condition is None or condition.on_chunk or not condition.on_document:
        return searchable
    sql = (
        "SELECT d.id FROM knowledge_document d WHERE d.tenant_id = %s "
        f"AND d.knowledge_base_id = ANY(%s) AND {condition.sql} LIMIT {FEW_DOCUMENTS + 1}"
    )
    parameters = [
        searchable.scope.tenant_id, list(searchable.base_ids), *condition.parameters,
    ]  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        ids = tuple(row[0] for row in cursor.fetchall())
    if len(ids) > FEW_DOCUMENTS:
        return searchable
    return replace(searchable, condition=None, document_ids=ids)
