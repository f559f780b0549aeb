"""Encryption of what the database holds in trust: credentials of sources, secrets of webhooks.

Fernet (AES-128-CBC with HMAC-SHA256) with several keys: the first one encrypts, all of them decrypt, so a
key is replaced by putting a new one in front and running `groundwork rotate-keys`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from config.errors import AppError


class SealedError(AppError):
    """What was encrypted cannot be read with the present keys."""

    code = "sealed"
    title = "Encrypted with another key"


def seal(value: Any) -> str:
    """A JSON value, encrypted."""
    return _box().encrypt(json.dumps(value).encode()).decode()


def unseal(text: str) -> Any:
    """The value again. Raises `SealedError` when no key fits."""
    try:
        return json.loads(_box().decrypt(text.encode()))
    except InvalidToken as error:
        raise SealedError(
            "Stored credentials were encrypted with a key that is not in GROUNDWORK_ENCRYPTION_KEYS. "
            "Add that key, or enter the credentials again."
        ) from error


def reseal(text: str) -> str:
    """The same, encrypted with the first key."""
    try:
        return _box().rotate(text.encode()).decode()
    except InvalidToken as error:
        raise SealedError("No key in GROUNDWORK_ENCRYPTION_KEYS fits.") from error


def _box() -> MultiFernet:
    keys: list[str] = settings.GROUNDWORK_ENCRYPTION_KEYS or [settings.SECRET_KEY]
    return MultiFernet([Fernet(_key(text)) for text in keys])


def _key(text: str) -> bytes:
    """Any long random text serves as a key."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"groundwork" + text.encode()).digest())
