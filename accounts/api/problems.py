"""Every error under /api/ as an RFC 9457 problem document; other paths get Django's pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.settings import api_settings

from accounts.access import Actor
from accounts.services.audit import record_denial
from config.errors import (
    AppError,
    FieldError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
)

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
_PREFIX = "/api/"


class TooLargeError(AppError):
    """The request is larger than the server accepts."""

    code = "too_large"
    http_status = 413
    title = "Too large"


_DJANGO_ERRORS: dict[type[Exception], Callable[[], AppError]] = {
    Http404: NotFoundError,
    PermissionDenied: lambda: ForbiddenError("You may not do this."),
    RequestDataTooBig: lambda: TooLargeError("The request is larger than the server accepts."),
    SuspiciousOperation: lambda: InvalidInputError("The request is malformed."),
}


def problem(
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> JsonResponse:
    """A problem document. `type` is a name, not a page: https://www.rfc-editor.org/rfc/rfc9457#name-type"""
    body: dict[str, Any] = {
        "type": f"urn:groundwork:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if errors:
        body["errors"] = [{"field": error.field, "message": error.message} for error in errors]
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE, headers=headers)


def problem_response(exc: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """The exception handler of REST framework: the one place where any error becomes an answer."""
    if isinstance(exc, exceptions.APIException) and not isinstance(exc, exceptions.ValidationError):
        if isinstance(exc, exceptions.PermissionDenied):
            _record_denial(context["request"])
        return _from_rest_framework(exc)
    error = _as_app_error(exc)
    if error is None:
        logger.error("An API request failed", exc_info=exc)
        return _unexpected()
    if isinstance(error, ForbiddenError):
        _record_denial(context["request"])
    return from_app_error(error)


def from_app_error(error: AppError) -> JsonResponse:
    """The document of an error of ours."""
    headers = {}
    if isinstance(error, RateLimitedError) and error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return problem(
        status=error.http_status,
        code=error.code,
        title=error.title,
        detail=error.message,
        errors=error.errors if isinstance(error, InvalidInputError) else (),
        headers=headers,
    )


def _as_app_error(exc: Exception) -> AppError | None:
    if isinstance(exc, AppError):
        return exc
    if isinstance(exc, exceptions.ValidationError):
        return InvalidInputError("The input is not valid.", list(_field_errors(exc.detail)))
    if isinstance(exc, DjangoValidationError):
        fields = exc.message_dict if hasattr(exc, "error_dict") else {"": exc.messages}
        return InvalidInputError("The input is not valid.", list(_field_errors(fields)))
    return next((make() for kind, make in _DJANGO_ERRORS.items() if isinstance(exc, kind)), None)


def _from_rest_framework(exc: exceptions.APIException) -> JsonResponse:
    headers = {}
    if auth_header := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait_s := getattr(exc, "wait", None):  # of Throttled
        headers["Retry-After"] = str(max(1, round(wait_s)))
    if isinstance(exc, exceptions.NotFound):
        return from_app_error(NotFoundError(str(exc.detail)))
    codes = exc.get_codes()
    return problem(
        status=exc.status_code,
        code=codes if isinstance(codes, str) else exc.default_code,
        title=str(type(exc).default_detail).split("{", 1)[0].strip(' ."') or "Error",
        detail=str(exc.detail),
        headers=headers,
    )


def _field_errors(detail: Any, path: str = "") -> Iterator[FieldError]:
    """Nested errors as dotted names: `{"a": {"b": ["x"]}}` becomes `a.b`; list items count from 0."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            is_general = name == api_settings.NON_FIELD_ERRORS_KEY
            yield from _field_errors(inner, path if is_general else _join(path, str(name)))
    elif isinstance(detail, list | tuple):
        for number, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list | tuple)
            yield from _field_errors(inner, _join(path, str(number)) if nested else path)
    else:
        yield FieldError(path, str(detail))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _record_denial(request: Any) -> None:
    actor = getattr(request, "auth", None)
    if isinstance(actor, Actor):
        record_denial(actor, f"api.{request.method}", target=request.path)


def _unexpected() -> JsonResponse:
    return problem(
        status=500,
        code="error",
        title="Internal error",
        detail="Something went wrong on the server; it has been written to the log.",
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400."""
    if request.path.startswith(_PREFIX):
        return from_app_error(
            _as_app_error(exception) or InvalidInputError("The request is malformed.")
        )
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 403."""
    if request.path.startswith(_PREFIX):
        return from_app_error(ForbiddenError("You may not do this."))
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404, which is an unknown route."""
    if request.path.startswith(_PREFIX):
        return from_app_error(NotFoundError())
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500; Django has logged the exception."""
    if request.path.startswith(_PREFIX):
        return _unexpected()
    return defaults.server_error(request)
