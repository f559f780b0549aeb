"""How connections and their items stand, in as many queries for a page as for one row."""

from __future__ import annotations

from django.db.models import Count, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, JSONObject

from connectors.models import Connection, SyncItem, SyncRun
from knowledge.models import Document

_FAILED = Document.Status.FAILED


def with_standing(connections: QuerySet[Connection]) -> QuerySet[Connection]:
    """Adds `item_counts` (by status; None without items), `count_not_indexed` and `latest_runs` (one or
    none)."""
    by_status = {name: Count("id", filter=Q(status=name)) for name in SyncItem.Status.values}
    items = SyncItem.objects.filter(connection_id=OuterRef("id")).order_by()
    documents = Document.objects.filter(source_id=OuterRef("id"), status=_FAILED).order_by()
    failed = documents.values("source_id").annotate(
        n=Count(Coalesce("replaces_id", "id"), distinct=True)
    )
    latest = SyncRun.objects.order_by("connection_id", "-created_at", "-id")
    return connections.annotate(
        item_counts=Subquery(
            items.values("connection_id").annotate(n=JSONObject(**by_status)).values("n")
        ),
        count_not_indexed=Coalesce(Subquery(failed.values("n"), output_field=IntegerField()), 0),
    ).prefetch_related(
        Prefetch("runs", queryset=latest.distinct("connection_id"), to_attr="latest_runs")
    )


def items_of(connection: Connection, status: str = "") -> QuerySet[SyncItem]:
    """The items of a connection, each with `index_error`: why its document, or a newer version of it, could
    not be indexed; None where it could. Those are among the failed ones."""
    items: QuerySet[SyncItem] = SyncItem.objects.filter(connection=connection)
    if status == SyncItem.Status.FAILED:
        documents = Document.objects.filter(source_id=connection.id, status=_FAILED)
        unreadable = documents.values(document=Coalesce("replaces_id", "id"))
        items = items.filter(Q(status=status) | Q(document_id__in=unreadable))
    elif status:
        items = items.filter(status=status)
    version = Q(id=OuterRef("document_id")) | Q(replaces_id=OuterRef("document_id"))
    failed = Document.objects.filter(version, status=_FAILED).order_by("-created_at")
    return items.annotate(index_error=Subquery(failed.values("error")[:1]))


def has_index_error(item: SyncItem) -> bool:
    """Whether an item was stored, but its document, or a newer version of it, could not be indexed."""
    version = Q(id=item.document_id) | Q(replaces_id=item.document_id)
    return (
        item.document_id is not None and Document.objects.filter(version, status=_FAILED).exists()
    )
