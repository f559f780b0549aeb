"""Recording searches, which must never make one fail."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from django.db import DatabaseError
from django.db.models import QuerySet

from accounts.access import Action, Actor
from accounts.tenancy import new_id, tenant_scope
from config.errors import NotFoundError
from search.models import SearchFeedback, SearchQuery
from search.services.search import SearchOutcome

logger = logging.getLogger(__name__)


def record_search(actor: Actor, outcome: SearchOutcome, asked: dict[str, Any]) -> UUID:
    """Write a search down in a transaction of its own; returns its id, also when writing fails."""
    search_id, request = new_id(), outcome.request
    try:
        with tenant_scope(actor.tenant_id, durable=False):
            SearchQuery.objects.create(
                id=search_id,
                actor=actor.label[:300],
                query=request.query.replace("\x00", ""),
                mode=request.mode,
                strategy=request.strategy,
                request=asked,
                knowledge_base_ids=outcome.scope.base_ids,
                chunk_ids=[hit.chunk.id for hit in outcome.hits],
                result_count=len(outcome.hits),
                timings_ms=outcome.timings_ms,
                total_ms=outcome.timings_ms.get("total", 0.0),
            )
    except DatabaseError:
        logger.exception("A search could not be recorded")
    return search_id


def rate_search(
    *, actor: Actor, search_id: str, rating: str, chunk_id: UUID | None, comment: str
) -> SearchFeedback:
    """Keep what someone thinks of a search or of one of its results."""
    actor.require(Action.SEARCH)
    try:
        found = SearchQuery.objects.filter(id=UUID(search_id)).first()
    except ValueError as error:
        raise NotFoundError from error
    if found is None or (chunk_id is not None and chunk_id not in found.chunk_ids):
        raise NotFoundError
    feedback: SearchFeedback = SearchFeedback.objects.create(
        search=found, rating=rating, chunk_id=chunk_id, comment=comment, actor=actor.label[:300]
    )
    return feedback


def recorded_searches() -> QuerySet[SearchQuery]:
    """Every search of the present tenant."""
    searches: QuerySet[SearchQuery] = SearchQuery.objects.all()
    return searches
