"""`Idempotency-Key`: a write that is sent again is answered again, not done again.

The answers lie in a tenant table, not in the cache: the answer then commits in the transaction of the
write itself, so that after a crash either both exist or neither, and an evicted cache entry can never
make a retry write twice. The claim commits before the work starts, so a second request at the same
time sees it. Error answers are not kept; a retry after an error is a fresh attempt.
https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Actor
from accounts.models import IdempotencyRecord
from accounts.tenancy import tenant_scope
from config.errors import AppError, ConflictError, FieldError, InvalidInputError

_LIFETIME = timedelta(hours=24)
_LEASE = timedelta(minutes=10)  # a claim older than this belongs to a process that died
_MAX_KEY_LENGTH = 255


class KeyReusedError(AppError):
    """The key has been used for another request."""

    code = "idempotency_key_reused"
    http_status = 422
    title = "Idempotency key reused"


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of this request to do the work of a key."""

    tenant_id: UUID
    record_id: UUID


class Replay(Exception):  # noqa: N818 - carries an answer, not an error
    """The work has been done before; this is what was answered."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


def claim(actor: Actor, key: str, request: Request) -> Claim:
    """Take the key for this request. Raises `Replay` if it is done, `ConflictError` if it is at work."""
    if len(key) > _MAX_KEY_LENGTH or not key.isprintable():
        fault = FieldError("Idempotency-Key", f"At most {_MAX_KEY_LENGTH} printable characters.")
        raise InvalidInputError("The idempotency key is not valid.", [fault])
    fingerprint = _fingerprint(request)
    now = timezone.now()
    with tenant_scope(actor.tenant_id):
        records = IdempotencyRecord.objects.all()
        records.filter(claimed_at__lt=now - _LIFETIME).delete()
        record, is_new = IdempotencyRecord.objects.get_or_create(
            actor=_name(actor), key=key, defaults={"fingerprint": fingerprint}
        )
        if not is_new:
            _answer_from(record, fingerprint)
            expired = records.filter(id=record.id, completed_at=None, claimed_at__lt=now - _LEASE)
            if not expired.update(claimed_at=now):
                raise ConflictError("A request with this idempotency key is still being worked on.")
    return Claim(actor.tenant_id, record.id)


def complete(claim: Claim, response: HttpResponse, *, keeps_body: bool) -> None:
    """Keep the answer; part of the caller's transaction if there is one. Errors and streams free the key."""
    if response.status_code >= 400 or not isinstance(response, Response):
        release(claim)
        return
    with tenant_scope(claim.tenant_id):
        IdempotencyRecord.objects.filter(id=claim.record_id).update(
            completed_at=timezone.now(),
            status=response.status_code,
            body=response.rendered_content.decode() if keeps_body else None,
        )


def release(claim: Claim) -> None:
    """Free the key: the work was not done."""
    with tenant_scope(claim.tenant_id):
        IdempotencyRecord.objects.filter(id=claim.record_id).delete()


def _answer_from(record: IdempotencyRecord, fingerprint: str) -> None:
    if record.fingerprint != fingerprint:
        raise KeyReusedError("This idempotency key was used for a different request.")
    if record.completed_at is None:
        return
    if record.body is None:
        raise ConflictError(
            "This was done before, and its answer held a secret that is shown only once."
        )
    raise Replay(
        HttpResponse(
            record.body,
            status=record.status,
            content_type="application/json",
            headers={"Idempotency-Replayed": "true"},
        )
    )


def _name(actor: Actor) -> str:
    return f"key:{actor.api_key_id}" if actor.api_key_id else f"user:{actor.user_id}"


def _fingerprint(request: Request) -> str:
    """A digest of what is asked: the path and the parsed body, files by their content. The raw body of a
    form would not do: each attempt draws a new boundary."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    data: Any = request.data
    if not isinstance(data, QueryDict):
        digest.update(json.dumps(data, sort_keys=True, default=str).encode())
        return digest.hexdigest()
    for name, values in sorted(data.lists()):
        for value in values:
            if isinstance(value, UploadedFile):
                digest.update(f"\n{name}={value.name}:{value.size}:".encode())
                for chunk in value.chunks():
                    digest.update(chunk)
                value.seek(0)
            else:
                digest.update(f"\n{name}={json.dumps(str(value))}".encode())
    return digest.hexdigest()
