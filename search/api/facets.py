"""Facets over HTTP."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from search.request import MAX_QUERY_CHARS
from search.retrieval.filters import compile_filter
from search.services.facets import (
    DEFAULT_FACETS,
    DEFAULT_VALUES,
    MAX_OFFSET,
    MAX_VALUES,
    FacetRequest,
    read_facets,
)


class _Listed(serializers.CharField):
    """Values divided by commas; none of them empty."""

    def to_internal_value(self, data: Any) -> Any:
        """The values as a list."""
        text = super().to_internal_value(data)
        return [part.strip() for part in text.split(",") if part.strip()]


class _Json(serializers.CharField):
    """An object written as JSON."""

    def to_internal_value(self, data: Any) -> Any:
        """The object."""
        try:
            value = json.loads(super().to_internal_value(data) or "{}", parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise serializers.ValidationError("Must be JSON.") from error
        if not isinstance(value, dict):
            raise serializers.ValidationError("Must be a JSON object.")
        return value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


class FacetParametersSerializer(serializers.Serializer[FacetRequest]):
    """The parameters of GET /search/facets/."""

    fields_ = _Listed(
        required=False,
        help_text="Fields of the filter language, divided by commas; at most 10. "
        f"Left out: {', '.join(DEFAULT_FACETS)}.",
    )
    knowledge_bases = _Listed(required=False, help_text="Slugs or ids, divided by commas.")
    filter = _Json(required=False, help_text="A filter of the search, as JSON.")
    query = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=MAX_QUERY_CHARS,
        help_text="Counts only passages that hold one of its words.",
    )
    as_principals = _Listed(required=False, help_text="Divided by commas.")
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_VALUES, min_value=1, max_value=MAX_VALUES
    )
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=MAX_OFFSET)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """`fields` is a name of the serializer's own and is bound here."""
        declared = super().get_fields()
        return {name.rstrip("_"): field for name, field in declared.items()}

    def to_request(self) -> FacetRequest:
        """The checked request. Raises `InvalidInputError` naming what is wrong in the filter."""
        values = self.validated_data
        return FacetRequest(
            fields=values.get("fields") or DEFAULT_FACETS,
            knowledge_bases=values.get("knowledge_bases"),
            condition=compile_filter(values.get("filter")),
            query=values["query"].replace("\x00", " "),
            as_principals=values.get("as_principals"),
            limit=values["limit"],
            offset=values["offset"],
        )


class FacetsSerializer(serializers.Serializer[Any]):
    """What was counted. docs/api.md shows a facet."""

    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    facets = serializers.DictField(child=serializers.DictField())
    warnings = serializers.ListField(child=serializers.CharField(), required=False)


class FacetsView(TenantAPIView):
    """The values that fields have, with counts."""

    action_for = {"GET": Action.SEARCH}

    @extend_schema(parameters=[FacetParametersSerializer], responses=FacetsSerializer)
    def get(self, request: Request) -> Response:
        """Count the documents and chunks that the caller may see, by the values of fields."""
        parameters = FacetParametersSerializer(data=request.query_params.dict())
        parameters.is_valid(raise_exception=True)
        counts = read_facets(self.actor, parameters.to_request())
        body: dict[str, Any] = {
            "documents": counts.documents,
            "chunks": counts.chunks,
            "facets": counts.facets,
        }
        if counts.warning:
            body["warnings"] = [counts.warning]
        return Response(body)
