"""Why a search does not return a passage, over HTTP."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from config.errors import FieldError, InvalidInputError
from search.api.serializers import SearchBodySerializer
from search.services.why_not import WhyNot, explain_missing


class WhyNotBodySerializer(SearchBodySerializer):
    """The body of a search with the passage that is missed."""

    chunk_id = serializers.UUIDField(required=False, allow_null=True, default=None)
    document_id = serializers.UUIDField(required=False, allow_null=True, default=None)


class PassageCheckSerializer(serializers.Serializer[Any]):
    """One thing that should be so for a passage to be returned."""

    check = serializers.CharField()
    passed = serializers.BooleanField()
    detail = serializers.CharField()


class StandingSerializer(serializers.Serializer[Any]):
    """Where the passage stands in a leg; `needed` is the least score that the leg takes."""

    rank = serializers.IntegerField()
    score = serializers.FloatField()
    needed = serializers.FloatField(allow_null=True)


class WhyNotSerializer(serializers.Serializer[WhyNot]):
    """The verdict with what it rests on."""

    returned = serializers.BooleanField()
    rank = serializers.IntegerField(allow_null=True)
    verdict = serializers.CharField(source="verdict.code")
    explanation = serializers.CharField(source="verdict.explanation")
    document_id = serializers.UUIDField(source="document.id")
    chunk_id = serializers.UUIDField(source="chunk.id", allow_null=True, default=None)
    checks = PassageCheckSerializer(many=True)
    legs = serializers.DictField(child=StandingSerializer())


class WhyNotView(TenantAPIView):
    """Explains one passage of one search."""

    action_for = {"POST": Action.SEARCH}
    scoped = False  # no database connection is held while the query is embedded
    serializer_class = WhyNotSerializer

    @extend_schema(request=WhyNotBodySerializer, responses=WhyNotSerializer)
    def post(self, request: Request) -> Response:
        """Say why a passage is returned or not."""
        body = WhyNotBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        if (values["chunk_id"] is None) == (values["document_id"] is None):
            raise InvalidInputError(
                "Say which passage is missed.",
                [FieldError("chunk_id", "Give either a chunk_id or a document_id.")],
            )
        answer = explain_missing(
            self.actor,
            body.to_request(),
            values["filter"],
            chunk_id=values["chunk_id"],
            document_id=values["document_id"],
        )
        return Response(WhyNotSerializer(answer).data)
