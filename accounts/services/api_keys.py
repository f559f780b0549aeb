"""Issuing, checking and revoking API keys."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from accounts.access import Action, Actor
from accounts.models import ApiKey, Scope
from accounts.services.audit import record_event
from config.errors import FieldError, ForbiddenError, InvalidInputError

_USE_RECORDED_EVERY = timedelta(minutes=1)
_PREFIX_BYTES = 6


def issue_key(
    *,
    actor: Actor,
    name: str,
    scopes: Sequence[str],
    knowledge_base_ids: Sequence[UUID] | None = None,
    agent_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its full text, `gw_<prefix>_<secret>`, which nobody can read again."""
    actor.require(Action.ADMIN)
    _validate(name, scopes, expires_at)
    if agent_id is not None:
        raise InvalidInputError(
            "There is no such agent; agents come with a later version.",
            [FieldError("agent", "Leave it out and limit the key by knowledge_bases.")],
        )
    _require_no_more(actor, scopes, knowledge_base_ids)
    prefix, secret = secrets.token_hex(_PREFIX_BYTES), secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        name=name.strip(),
        prefix=prefix,
        secret_hash=_digest(secret),
        scopes=sorted(set(scopes)),
        knowledge_base_ids=None if knowledge_base_ids is None else sorted(set(knowledge_base_ids)),
        agent_id=agent_id,
        expires_at=expires_at,
        created_by=actor.label[:254],
    )
    record_event(
        actor, "api_key.issued", target=str(key), target_id=key.id, detail={"scopes": key.scopes}
    )
    return key, f"gw_{prefix}_{secret}"


def find_valid_key(text: str) -> ApiKey | None:
    """The key whose full text this is, if it may still be used. Runs before the tenant is known."""
    kind, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    if kind != "gw" or not prefix.isalnum() or not secret:
        return None
    digest = _digest(secret)
    for key in ApiKey.unscoped.filter(prefix=prefix):
        if hmac.compare_digest(key.secret_hash, digest) and key.is_valid():
            _record_use(key)
            return key
    return None


def revoke_key(*, actor: Actor, key: ApiKey) -> None:
    """The key stops working at once; its row stays for the audit trail."""
    actor.require(Action.ADMIN)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        record_event(actor, "api_key.revoked", target=str(key), target_id=key.id)


def _validate(name: str, scopes: Sequence[str], expires_at: datetime | None) -> None:
    errors = []
    if not name.strip():
        errors.append(FieldError("name", "Say what will use the key."))
    unknown = sorted(set(scopes) - set(Scope.values))
    if not scopes or unknown:
        errors.append(
            FieldError(
                "scopes",
                f"Choose among {', '.join(Scope.values)}; not {', '.join(unknown) or 'none'}.",
            )
        )
    if expires_at is not None and expires_at <= timezone.now():
        errors.append(FieldError("expires_at", "This time has passed."))
    if errors:
        raise InvalidInputError("The key cannot be issued.", errors)


def _require_no_more(actor: Actor, scopes: Sequence[str], bases: Sequence[UUID] | None) -> None:
    """A key must not issue one that sees or may do more than itself."""
    bound = actor.knowledge_base_ids
    if bound is not None and (bases is None or not bound.issuperset(bases)):
        raise ForbiddenError(
            "This key is limited to some knowledge bases, and so are those it issues."
        )
    if Scope.PRINCIPALS in scopes and not actor.may_assert_principals:
        raise ForbiddenError("Only those who may name principals can issue keys that do.")


def _record_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _USE_RECORDED_EVERY:
        ApiKey.unscoped.filter(tenant_id=key.tenant_id, id=key.id).update(last_used_at=now)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
