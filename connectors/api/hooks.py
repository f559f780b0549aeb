"""Where sources tell of changes. Nobody is logged in here: the connector checks the sender's signature."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.api.problems import TooLargeError
from connectors.services.hooks import receive_hook

MAX_BYTES = 1024 * 1024


class HookView(APIView):
    """The webhook of one connection."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="hooks_receive",
        auth=[],
        request={"*/*": OpenApiTypes.BINARY},
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def post(self, request: Request, pk: str) -> HttpResponse:
        """Take what the source sends, in the source's own form, and answer as it wants."""
        body: bytes = request.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise TooLargeError("A webhook may send one megabyte.")
        answer = receive_hook(pk, request.headers, body)
        return HttpResponse(answer.body, content_type="text/plain; charset=utf-8")
