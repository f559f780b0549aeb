"""Slack's Web API: calls, pages, and what its errors mean (https://api.slack.com/web#responses)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from config.errors import (
    CredentialsError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)
from config.http import HttpClient
from connectors.base import Context
from connectors.native.paging import Page, follow_pages

_PAGE = 200
_WAIT_S = 30.0
_CREDENTIALS = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required"}
)  # fmt: skip
_TRANSIENT = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
# These are about a channel that this token cannot read, not about the connection.
UNREADABLE = frozenset({"not_in_channel", "channel_not_found", "is_archived"})


class SlackError(RejectedError):
    """An answer that says `ok: false`; `reason` is Slack's word for it."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class SlackApi:
    """Calls methods by name."""

    def __init__(self, context: Context, base_url: str) -> None:
        self._context = context
        self._host = urlsplit(base_url).hostname
        self.http: HttpClient = context.client(base_url)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer of a method. Raises what its error means."""
        answer = self._ask(method, params)
        if answer.get("error") == "token_expired" and self._renew():
            answer = self._ask(method, params)
        if not answer.get("ok"):
            raise _error_of(method, answer)
        return answer

    def pages(self, method: str, key: str, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """The pages of a method's list."""
        params = {"limit": _PAGE, **params}
        return follow_pages(partial(self._page, method, key, params))

    def may_have_token(self, url: str) -> bool:
        """Whether an address is Slack's own: a message can name any other one as its file."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_slack = parts.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com"))
        return is_slack or host == self._host

    def _page(
        self, method: str, key: str, params: dict[str, Any], cursor: str
    ) -> Page[dict[str, Any]]:
        answer = self.call(method, **params, **({"cursor": cursor} if cursor else {}))
        after = (answer.get("response_metadata") or {}).get("next_cursor") or ""
        return answer.get(key) or [], after

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        found = self.http.get_json(method, params)
        return found if isinstance(found, dict) else {}

    def _renew(self) -> bool:
        renew = getattr(self._context.auth, "renew", None)
        return bool(renew and renew())


def _error_of(method: str, answer: dict[str, Any]) -> RemoteError:
    reason = str(answer.get("error") or "unknown_error")[:100]
    if reason in _CREDENTIALS:
        return CredentialsError(f"Slack does not accept the token ({reason}).")
    if reason in {"ratelimited", "rate_limited"}:
        return RateLimitedError("Slack asks to slow down.", _WAIT_S)
    if reason in _TRANSIENT:
        return TransientError(f"Slack has a problem of its own ({reason}).")
    if reason == "missing_scope":
        needed = str(answer.get("needed") or "one that it does not name")
        message = f"The token lacks the scope {needed}, which {method} needs."
        return SlackError(message, reason)
    if reason == "not_allowed_token_type":
        return SlackError(f"{method} works with a user token (xoxp-…) only.", reason)
    return SlackError(f"Slack refuses {method}: {reason}.", reason)
