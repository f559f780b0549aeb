"""Slack's Events API: signed requests (https://api.slack.com/authentication/verifying-requests-from-slack)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from config.errors import ForbiddenError
from connectors.base import WebhookAnswer

_WINDOW_S = 300.0  # an older request may be somebody's repetition


def answer_event(
    secret: str, headers: Mapping[str, str], body: bytes, *, now: float
) -> WebhookAnswer:
    """Answers the challenge; any event asks for a run. Raises `ForbiddenError` unless Slack signed it just
    now."""
    named = {name.lower(): value for name, value in headers.items()}
    timestamp = named.get("x-slack-request-timestamp", "")
    given = named.get("x-slack-signature", "")
    if not secret:
        raise ForbiddenError("The connection has no signing secret.")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(now - int(timestamp)) > _WINDOW_S:
        raise ForbiddenError("The request is too old, or has no time.")
    signed = b":".join((b"v0", timestamp.encode(), body))
    right = "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(right.encode(), given.encode()):
        raise ForbiddenError("The signature is wrong.")
    return _answer(body)


def _answer(body: bytes) -> WebhookAnswer:
    try:
        event = json.loads(body)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        return WebhookAnswer(sync=False)
    if event.get("type") == "url_verification":
        return WebhookAnswer(sync=False, body=str(event.get("challenge", "")))
    return WebhookAnswer(sync=event.get("type") == "event_callback")
