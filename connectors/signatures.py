"""Signatures of webhooks, as GitHub, Atlassian and others make them: HMAC-SHA256 of the body."""

from __future__ import annotations

import hashlib
import hmac

from pydantic import SecretStr

from config.errors import ForbiddenError


def require_signature(secret: SecretStr, given: str, body: bytes) -> None:
    """Raise `ForbiddenError` unless `given` ("sha256=…") is what the secret makes of the body. Without a
    secret nothing is believed."""
    key = secret.get_secret_value().encode()
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    if not key or not hmac.compare_digest(expected.encode(), given.strip().encode()):
        raise ForbiddenError("The signature is not that of the webhook's secret.")
