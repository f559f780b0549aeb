"""What can be connected, over HTTP. The same for every tenant."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from connectors.api.serializers import ConnectorSerializer
from connectors.base import Connector
from connectors.registry import connector_class, kinds

_LIST = inline_serializer(
    "ConnectorList",
    {
        "next": serializers.CharField(allow_null=True),
        "previous": serializers.CharField(allow_null=True),
        "results": ConnectorSerializer(many=True),
    },
)
_SEARCH = OpenApiParameter("search", str, description="Words of the name, description or category.")


class ConnectorsView(TenantAPIView):
    """All connectors."""

    action_for = {"GET": Action.READ}
    scoped = False  # asks the database nothing
    serializer_class = ConnectorSerializer

    @extend_schema(operation_id="connectors_list", parameters=[_SEARCH], responses=_LIST)
    def get(self, request: Request) -> Response:
        """List all on one page, by kind; `search` narrows it."""
        words = request.query_params.get("search", "").casefold().split()
        found = [one for one in map(connector_class, kinds()) if _has(one, words)]
        rows = ConnectorSerializer(found, many=True).data
        return Response({"next": None, "previous": None, "results": rows})


class ConnectorView(TenantAPIView):
    """One connector."""

    action_for = {"GET": Action.READ}
    scoped = False
    serializer_class = ConnectorSerializer

    @extend_schema(operation_id="connector_retrieve")
    def get(self, request: Request, kind: str) -> Response:
        """Read."""
        del request
        return Response(ConnectorSerializer(connector_class(kind)).data)


def _has(connector: type[Connector[Any]], words: list[str]) -> bool:
    spec = connector.spec
    text = f"{spec.kind} {spec.name} {spec.description} {spec.category}".casefold()
    return all(word in text for word in words)
