"""The base of every API view: rights, tenant scope, idempotent writes, pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts.access import Actor
from accounts.api import idempotency
from accounts.api.pagination import CreatedCursorPagination
from accounts.api.permissions import Right
from accounts.tenancy import tenant_scope


class TenantScopeMixin(APIView):
    """Runs the handler in one transaction in the scope of the caller's tenant.

    The transaction is rolled back when the handler raises, whatever is answered then. Declare
    `action_for = {"GET": Action.READ, …}` or `required_action`; a method without a right is closed.
    """

    action_for: ClassVar[Mapping[str, Right]] = {}
    required_action: Right | None = None
    scoped: ClassVar[bool] = (
        True  # False: the view opens scopes itself, e.g. to wait outside of them
    )
    shows_secret: ClassVar[bool] = False  # True: the answer of a POST is never kept for a retry
    http_method_names = ["get", "post", "put", "patch", "delete", "head"]
    pagination_class: Any = CreatedCursorPagination

    @property
    def actor(self) -> Actor:
        """Who calls. Known once permissions have been checked."""
        return cast(Actor, self.request.auth)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer; the transaction ends with the answer made, before it is sent."""
        self._claim: idempotency.Claim | None = None
        with ExitStack() as self._scope:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check who calls and what they may, then enter the tenant."""
        super().initial(request, *args, **kwargs)
        key = request.headers.get("Idempotency-Key")
        if key and request.method == "POST":
            self._claim = idempotency.claim(self.actor, key, request)
        if self.scoped:
            self._scope.enter_context(tenant_scope(self.actor.tenant_id))

    def handle_exception(self, exc: Exception) -> Response:
        """Roll back, then answer outside of the broken transaction."""
        self._scope.__exit__(type(exc), exc, exc.__traceback__)
        if isinstance(exc, idempotency.Replay):
            return exc.response  # type: ignore[return-value]
        if self._claim is not None:
            idempotency.release(self._claim)
            self._claim = None
        return super().handle_exception(exc)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Keep the answer of an idempotent write in the transaction of the write."""
        final = super().finalize_response(request, response, *args, **kwargs)
        if self._claim is not None:
            idempotency.complete(self._claim, final, keeps_body=not self.shows_secret)
        return final

    def paginate(
        self,
        rows: QuerySet[Any],
        serializer_class: type[BaseSerializer[Any]],
        *,
        ordering: Sequence[str] = CreatedCursorPagination.ordering,
    ) -> Response:
        """One page of the rows. The last of `ordering` must be unique."""
        paginator: CreatedCursorPagination = self.pagination_class()
        paginator.ordering = tuple(ordering)
        page = paginator.paginate_queryset(rows, self.request, view=self)
        context = {"request": self.request, "view": self}
        return paginator.get_paginated_response(
            serializer_class(page, many=True, context=context).data
        )


class TenantAPIView(TenantScopeMixin):
    """A view with a method for each HTTP method."""


class TenantViewSet(TenantScopeMixin, GenericViewSet[Any]):
    """A view set: `list`, `create`, … bound to methods in the URL table."""
