"""How a connection is doing, as the admin shows it on a page and while it changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from accounts.access import Actor
from connectors.admin.credentials import stored_credentials
from connectors.admin.specs import sign_in_method
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services.schedules import next_run_at
from knowledge.access import visible_documents
from knowledge.models import Document

CONNECTION_BADGES = {
    Connection.Status.ACTIVE: "ok",
    Connection.Status.PAUSED: "quiet",
    Connection.Status.NEEDS_AUTHORISATION: "bad",
}
RUN_BADGES = {
    SyncRun.Status.QUEUED: "busy",
    SyncRun.Status.RUNNING: "busy",
    SyncRun.Status.SUCCEEDED: "ok",
    SyncRun.Status.PARTIAL: "warn",
    SyncRun.Status.FAILED: "bad",
    SyncRun.Status.CANCELLED: "quiet",
    SyncRun.Status.SKIPPED: "quiet",
}
ITEM_BADGES = {
    SyncItem.Status.STORED: "ok",
    SyncItem.Status.FAILED: "bad",
    SyncItem.Status.SKIPPED: "quiet",
    SyncItem.Status.GONE: "warn",
}
_UNFINISHED = (Document.Status.PENDING, Document.Status.PROCESSING)


@dataclass(frozen=True, slots=True)
class Health:
    """What a person wants to know of a connection at a glance."""

    connection: Connection
    run: SyncRun | None
    documents: int
    indexing: int
    unindexed: int  # stored, but their document could not be indexed
    failed: int
    held: int
    next_changes_at: datetime | None
    next_full_at: datetime | None

    @property
    def badge(self) -> str:
        """The colour of the connection's state."""
        return CONNECTION_BADGES[Connection.Status(self.connection.status)]

    @property
    def is_changing(self) -> bool:
        """Whether looking again soon is worth it."""
        return bool(self.indexing or (self.run and self.run.is_unfinished))


def health_of(actor: Actor, connection: Connection) -> Health:
    """The health as of now."""
    documents = visible_documents(actor).filter(source_id=connection.id)
    items = connection.items.order_by()
    return Health(
        connection=connection,
        run=connection.runs.order_by("-created_at", "-id").first(),
        documents=documents.count(),
        indexing=documents.filter(status__in=_UNFINISHED).count(),
        unindexed=documents.filter(status=Document.Status.FAILED).count(),
        failed=items.filter(status=SyncItem.Status.FAILED).count(),
        held=items.filter(status=SyncItem.Status.GONE).count(),
        next_changes_at=next_run_at(connection, SyncRun.Kind.INCREMENTAL),
        next_full_at=next_run_at(connection, SyncRun.Kind.FULL),
    )


def render_health(health: Health) -> str:
    """The part of the page that changes by itself."""
    return render_to_string(
        "admin/connectors/connection/health.html",
        {"health": health, **run_context(health.run)},
    )


def run_context(run: SyncRun | None) -> dict[str, Any]:
    """What a template needs to show a run's state."""
    return {"run": run, "run_badge": RUN_BADGES[SyncRun.Status(run.status)] if run else ""}


def with_health(connections: QuerySet[Connection]) -> QuerySet[Connection]:
    """Connections with counts and the state of their last run, in one query."""
    mine = OuterRef("id")
    items = SyncItem.objects.filter(connection_id=mine).order_by()
    documents = Document.objects.filter(source_id=mine, replaces=None).order_by()
    runs = SyncRun.objects.filter(connection_id=mine).order_by("-created_at", "-id")
    return connections.annotate(
        count_documents=_count(documents, "source_id"),
        count_failed=_count(items.filter(status=SyncItem.Status.FAILED), "connection_id"),
        count_held=_count(items.filter(status=SyncItem.Status.GONE), "connection_id"),
        last_status=Subquery(runs.values("status")[:1]),
        last_created_at=Subquery(runs.values("created_at")[:1]),
    )


def needs_sign_in(connection: Connection) -> bool:
    """Whether a person still has to sign in at the source."""
    if sign_in_method(connection) is None:
        return False
    return not stored_credentials(connection).get("access_token")


def sign_in_url(connection: Connection) -> str:
    """Where a person signs in at the source; empty when this connection has no such way."""
    if sign_in_method(connection) is None:
        return ""
    try:
        return reverse("connectors_oauth_start", args=[connection.id])
    except NoReverseMatch:
        return ""


def _count(rows: QuerySet[Any], group: str) -> Coalesce:
    counted = rows.values(group).annotate(n=Count("id")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)
