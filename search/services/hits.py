"""Loading what results show, in as few statements as there are kinds of things to load."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection
from django.db.models import Q

from accounts.tenancy import current_tenant_id
from knowledge.models import Chunk
from search.outcome import Hit, SearchOutcome
from search.ranking import Ranked

_HEAVY = (
    "lexemes", "lexical_weights", "embedding", "embedding_alternate", "principals",
    "document__extracted_text", "document__warnings", "document__error",
)  # fmt: skip
_UNEMBEDDED = """
SELECT COALESCE(sum(chunk_count - embedded_count), 0) FROM knowledge_document
WHERE tenant_id = %s AND knowledge_base_id = ANY(%s) AND status = 'processing'
"""


def load_hits(outcome: SearchOutcome, ranked: Sequence[Ranked]) -> list[Hit]:
    """The results with everything they show, neighbours included where they were asked for."""
    bases = {base.id: base for base in outcome.scope.bases}
    ids = [candidate.fused.chunk_id for candidate in ranked]
    chunks: dict[UUID, Chunk] = {}
    found = Chunk.objects.filter(id__in=ids).select_related("document").defer(*_HEAVY)
    for chunk in found if ids else ():
        chunk.knowledge_base = bases[chunk.knowledge_base_id]
        chunks[chunk.id] = chunk
    hits = []
    for candidate in ranked:
        if (chunk := chunks.get(candidate.fused.chunk_id)) is not None:
            candidate.fused.score = candidate.score
            hits.append(
                Hit(
                    chunk,
                    candidate.fused,
                    recency=candidate.recency,
                    boost=candidate.boost,
                    duplicates=candidate.duplicates,
                )
            )
    if outcome.request.neighbours and hits:
        _add_neighbours(hits, outcome)
    return hits


def _add_neighbours(hits: Sequence[Hit], outcome: SearchOutcome) -> None:
    """The passages around each hit, in the order of the document, under the same permissions."""
    reach = outcome.request.neighbours
    wanted = Q()
    for hit in hits:
        first, last = hit.chunk.ordinal - reach, hit.chunk.ordinal + reach
        wanted |= Q(document_id=hit.chunk.document_id, ordinal__range=(first, last))
    around = Chunk.objects.filter(
        wanted, live=True, enabled=True, principals__overlap=list(outcome.scope.principals)
    ).only("id", "tenant_id", "document_id", "ordinal", "content")
    found = list(around.order_by("document_id", "ordinal"))
    for hit in hits:
        hit.neighbours = [
            chunk
            for chunk in found
            if chunk.document_id == hit.chunk.document_id
            and chunk.id != hit.chunk.id
            and abs(chunk.ordinal - hit.chunk.ordinal) <= reach
        ]


def count_unembedded(base_ids: Collection[UUID]) -> int:
    """How many passages of the bases still wait for their vector."""
    with connection.cursor() as cursor:
        cursor.execute(_UNEMBEDDED, [current_tenant_id(), list(base_ids)])
        waiting: int = cursor.fetchone()[0]
    return waiting
