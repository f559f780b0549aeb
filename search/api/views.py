"""Searching and its history over HTTP."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from search.api.serializers import (
    FeedbackSerializer,
    SearchBodySerializer,
    SearchQuerySerializer,
    render_outcome,
)
from search.services.history import rate_search, record_search, recorded_searches
from search.services.search import search


class SearchView(TenantAPIView):
    """Find passages."""

    action_for = {"POST": Action.SEARCH}
    scoped = False  # no database connection is held while the query is embedded
    serializer_class = SearchBodySerializer

    def post(self, request: Request) -> Response:
        """Search and answer with passages, best first."""
        body = SearchBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        outcome = search(self.actor, body.to_request())
        search_id = record_search(self.actor, outcome, dict(request.data))
        return Response(render_outcome(outcome, search_id))


class SearchesView(TenantAPIView):
    """Past searches of the tenant."""

    action_for = {"GET": Action.ADMIN}
    serializer_class = SearchQuerySerializer

    def get(self, request: Request) -> Response:
        """List, newest first."""
        return self.paginate(recorded_searches(), SearchQuerySerializer)


class FeedbackView(TenantAPIView):
    """What someone thinks of a search."""

    action_for = {"POST": Action.SEARCH}
    serializer_class = FeedbackSerializer

    def post(self, request: Request, pk: str) -> Response:
        """Rate a search or one of its results."""
        body = FeedbackSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        feedback = rate_search(
            actor=self.actor,
            search_id=pk,
            rating=body.validated_data["rating"],
            chunk_id=body.validated_data.get("chunk_id"),
            comment=body.validated_data.get("comment", ""),
        )
        return Response(FeedbackSerializer(feedback).data, status=status.HTTP_201_CREATED)
