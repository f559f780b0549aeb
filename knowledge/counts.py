"""Counting what is in bases, in one query for a whole list."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from knowledge.models import Chunk, Document, KnowledgeBase


def with_counts(bases: QuerySet[KnowledgeBase]) -> QuerySet[KnowledgeBase]:
    """Adds count_documents, count_ready, count_unfinished, count_failed and count_chunks."""
    documents = Document.objects.filter(knowledge_base_id=OuterRef("id"), replaces=None)
    unfinished = Q(status__in=[Document.Status.PENDING, Document.Status.PROCESSING])
    return bases.annotate(
        count_documents=_count(documents),
        count_ready=_count(documents.filter(status=Document.Status.READY)),
        count_unfinished=_count(documents.filter(unfinished)),
        count_failed=_count(documents.filter(status=Document.Status.FAILED)),
        count_chunks=_count(Chunk.objects.filter(knowledge_base_id=OuterRef("id"), live=True)),
    )


def _count(rows: QuerySet[Any]) -> Coalesce:
    per_base = rows.order_by().values("knowledge_base_id").annotate(n=Count("id")).values("n")
    return Coalesce(Subquery(per_base, output_field=IntegerField()), 0)
