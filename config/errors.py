"""The errors of the product. The type says what to do next; `message` is safe to show to anyone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of one input field; `field` is the dotted name the client sent."""

    field: str
    message: str


class AppError(Exception):
    """Base of every error the product raises on purpose."""

    code = "error"
    http_status = 500
    title = "Internal error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFoundError(AppError):
    """The thing is not there, or not for this caller: both read the same."""

    code = "not_found"
    http_status = 404
    title = "Not found"

    def __init__(self, message: str = "No such object, or not visible to you.") -> None:
        super().__init__(message)


class ForbiddenError(AppError):
    """The caller is known but lacks the role or scope for this action."""

    code = "forbidden"
    http_status = 403
    title = "Forbidden"


class InvalidInputError(AppError):
    """The input is wrong; `errors` names each field."""

    code = "invalid"
    http_status = 400
    title = "Invalid input"

    def __init__(self, message: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class ConflictError(AppError):
    """The request contradicts the present state."""

    code = "conflict"
    http_status = 409
    title = "Conflict"


class RemoteError(AppError):
    """A remote service failed. Its four children say what to do."""

    code = "remote"
    http_status = 502
    title = "A remote service failed"


class CredentialsError(RemoteError):
    """Stop and ask the user for valid credentials."""

    code = "remote_credentials"


class RateLimitedError(RemoteError):
    """Wait `retry_after_s`, then try again."""

    code = "remote_rate_limited"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TransientError(RemoteError):
    """Try again later."""

    code = "remote_transient"


class RejectedError(RemoteError):
    """Skip this item and count it; trying again will not help. `status` is the HTTP status, if any."""

    code = "remote_rejected"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
