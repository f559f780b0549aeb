"""The search body and the answer, as the outer contract has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from rest_framework import serializers

from config.errors import FieldError, InvalidInputError
from knowledge.api.serializers import location_of
from knowledge.models import Document
from search.models import SearchFeedback, SearchQuery
from search.request import MAX_NEIGHBOURS, Mode, SearchRequest, Strategy
from search.retrieval.filters import compile_filter
from search.services.facets import facet_fields
from search.services.search import Hit, SearchOutcome
from search.snippets import make_snippet

# Operations the contract knows and this installation does not have yet; asking for one is answered
# with a remark, not with silence.
_LATER = ("expand_query", "interpret_filters", "generate_answer", "reuse_clusters")
_LATER_MODES = ("fast", "deep")


class SearchBodySerializer(serializers.Serializer[SearchRequest]):
    """The body of POST /search/."""

    query = serializers.CharField(trim_whitespace=False)
    knowledge_bases = serializers.ListField(
        child=serializers.CharField(), required=False, allow_null=True, default=None
    )
    mode = serializers.ChoiceField([*Mode, *_LATER_MODES], required=False, default=Mode.INSTANT)
    strategy = serializers.ChoiceField(list(Strategy), required=False, default=Strategy.HYBRID)
    limit = serializers.IntegerField(required=False, default=10)
    offset = serializers.IntegerField(required=False, default=0)
    filter = serializers.DictField(required=False, allow_null=True, default=None)
    as_principals = serializers.ListField(
        child=serializers.CharField(max_length=300), required=False, allow_null=True, default=None
    )
    recency = serializers.FloatField(required=False, default=0.0, min_value=0.0, max_value=1.0)
    group_by_document = serializers.BooleanField(required=False, default=False)
    collapse_duplicates = serializers.BooleanField(required=False, default=False)
    neighbours = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MAX_NEIGHBOURS
    )
    facets = serializers.ListField(
        child=serializers.CharField(), required=False, allow_null=True, default=None
    )
    rerank = serializers.BooleanField(required=False, allow_null=True, default=None)
    expand_query = serializers.BooleanField(required=False, allow_null=True, default=None)
    interpret_filters = serializers.BooleanField(required=False, allow_null=True, default=None)
    generate_answer = serializers.BooleanField(required=False, allow_null=True, default=None)
    reuse_clusters = serializers.BooleanField(required=False, allow_null=True, default=None)
    deadline_ms = serializers.IntegerField(
        required=False, default=10_000, min_value=100, max_value=120_000
    )
    explain = serializers.BooleanField(required=False, default=False)

    def to_request(self) -> SearchRequest:
        """The checked request. Raises `InvalidInputError` for what only the search knows to be wrong."""
        values = self.validated_data
        if values["mode"] in _LATER_MODES:
            raise InvalidInputError(
                f"The mode {values['mode']} is not available in this version.",
                [FieldError("mode", "Use filename or instant.")],
            )
        facets = facet_fields(values["facets"] or [])
        return SearchRequest(
            query=values["query"].replace("\x00", " "),
            knowledge_bases=values["knowledge_bases"],
            mode=Mode(values["mode"]),
            strategy=Strategy(values["strategy"]),
            limit=values["limit"],
            offset=values["offset"],
            condition=compile_filter(values["filter"]),
            as_principals=values["as_principals"],
            group_by_document=values["group_by_document"],
            collapse_duplicates=values["collapse_duplicates"],
            recency=values["recency"],
            rerank=bool(values["rerank"]),
            neighbours=values["neighbours"],
            facets=tuple(field.name for field in facets),
            deadline_ms=values["deadline_ms"],
            explain=values["explain"],
            unavailable=[name for name in _LATER if values[name]],
        )


def render_outcome(outcome: SearchOutcome, search_id: UUID) -> dict[str, Any]:
    """The response body."""
    request = outcome.request
    degraded = [{"operation": name, "reason": reason} for name, reason in outcome.degraded]
    body: dict[str, Any] = {
        "id": str(search_id),
        "mode": request.mode,
        "strategy": request.strategy,
        "results": [_render_hit(hit, outcome) for hit in outcome.hits],
        "total": _render_total(outcome),
        "facets": outcome.facets,
        "clusters": [],
        "answer": None,
        "sources": outcome.sources,
        "degraded": degraded,
        "complete": not degraded and not outcome.unembedded,
        "timings_ms": outcome.timings_ms,
    }
    if outcome.synonyms:
        body["synonyms"] = [{"term": asked, "added": added} for asked, added in outcome.synonyms]
    if outcome.unembedded:
        body["warnings"] = [
            f"{outcome.unembedded} passages are still being indexed; they are found by their words only."
        ]
    return body


def _render_total(outcome: SearchOutcome) -> dict[str, Any] | None:
    """How many passages match; `exact` is false for an estimate."""
    total = outcome.total
    return None if total is None else {"value": total.value, "exact": total.exact}


def _render_hit(hit: Hit, outcome: SearchOutcome) -> dict[str, Any]:
    chunk, document = hit.chunk, hit.chunk.document
    created = document.source_created_at or document.created_at
    updated = document.source_updated_at or document.updated_at
    result: dict[str, Any] = {
        "chunk_id": str(chunk.id),
        "document_id": str(document.id),
        "knowledge_base": chunk.knowledge_base.slug,
        "title": document.title or document.filename,
        "filename": document.filename,
        "ordinal": chunk.ordinal,
        "content": chunk.content,
        "snippet": make_snippet(chunk.content, outcome.terms, [chunk.language]),
        "score": round(hit.fused.score, 6),
        "source": document.source,
        "url": document_url(document),
        "location": location_of(chunk),
        "created_at": created.isoformat(),
        "updated_at": updated.isoformat(),
        "metadata": document.metadata,
        "neighbours": [
            {"chunk_id": str(near.id), "content": near.content, "ordinal": near.ordinal}
            for near in hit.neighbours
        ],
        "duplicates": [str(chunk_id) for chunk_id in hit.duplicates],
    }
    if outcome.request.explain:
        result["explain"] = explain_hit(hit)
    return result


def explain_hit(hit: Hit) -> dict[str, Any]:
    """Rank and score in each leg; null where the leg did not return the passage."""
    legs: dict[str, Any] = dict.fromkeys(("lexical", "vector", "federated", "rerank", "recency"))
    for name, (rank, score) in hit.fused.legs.items():
        legs[name] = {"rank": rank, "score": round(score, 4)}
    if hit.rerank is not None:
        legs["rerank"] = {"rank": hit.rerank[0], "score": round(hit.rerank[1], 4)}
    if hit.recency is not None:
        legs["recency"] = {"score": round(hit.recency, 4)}
    if hit.boost != 1.0:
        legs["boost"] = {"factor": round(hit.boost, 4)}
    return legs


def document_url(document: Document) -> str:
    """Where a person opens the document: its source, or its page here."""
    if document.source_uri.startswith(("http://", "https://")):
        return document.source_uri
    return f"{settings.GROUNDWORK_URL}/admin/knowledge/document/{document.id}/change/"


class SearchQuerySerializer(serializers.ModelSerializer[SearchQuery]):
    """A past search."""

    class Meta:
        model = SearchQuery
        fields = (
            "id", "actor", "query", "mode", "strategy", "result_count", "chunk_ids", "timings_ms",
            "total_ms", "created_at",
        )  # fmt: skip


class FeedbackSerializer(serializers.ModelSerializer[SearchFeedback]):
    """A thumb up or down."""

    class Meta:
        model = SearchFeedback
        fields = ("id", "rating", "chunk_id", "comment", "created_at")
        read_only_fields = ("id", "created_at")
        extra_kwargs = {"comment": {"required": False}, "chunk_id": {"required": False}}
