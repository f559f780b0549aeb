"""Keeping webhooks, and telling them what happens. Sending itself is in `webhook_delivery.py`."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.access import Action, Actor
from accounts.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from accounts.services.audit import record_event
from accounts.tenancy import new_id, tenant_scope
from config.errors import ConflictError, FieldError, ForbiddenError, InvalidInputError
from config.http_guard import is_open_host
from config.secrets import SealedError, reseal

CHOOSABLE = tuple(event for event in WebhookEvent if event != WebhookEvent.PING)
_CHANGEABLE = frozenset({"url", "description", "event_types", "enabled"})
_SECRET_BYTES = 32


def emit_event(tenant_id: UUID, event: WebhookEvent, data: Mapping[str, Any]) -> None:
    """Tell every webhook of the tenant that wants this. Part of the caller's transaction: what is rolled back
    is told to nobody."""
    with tenant_scope(tenant_id):
        _send(_wanting(event), event, data)


def is_wanted(event: WebhookEvent) -> bool:
    """Whether any webhook of the present tenant wants this, for callers to whom the data is dear."""
    return bool(_wanting(event))


def create_webhook(
    *, actor: Actor, url: str, event_types: Sequence[str], description: str = ""
) -> tuple[WebhookEndpoint, str]:
    """A new webhook and its secret, which nobody can read again."""
    _require(actor)
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"
    endpoint = WebhookEndpoint(
        url=url.strip(),
        event_types=sorted(set(event_types)),
        description=description.strip(),
        created_by=actor.label[:300],
    )
    endpoint.secret = secret
    _validate(endpoint)
    endpoint.save(force_insert=True)
    _record(actor, "webhook.created", endpoint)
    return endpoint, secret


def update_webhook(*, actor: Actor, endpoint: WebhookEndpoint, **values: Any) -> WebhookEndpoint:
    """Change a webhook. Enabling it forgets its failures."""
    _require(actor)
    unknown = [FieldError(name, "Cannot be set.") for name in sorted(set(values) - _CHANGEABLE)]
    if unknown:
        raise InvalidInputError("The webhook cannot be saved.", unknown)
    for name, value in values.items():
        setattr(endpoint, name, value)
    _validate(endpoint)
    if values.get("enabled"):
        endpoint.failing_since, endpoint.disabled_reason = None, ""
    endpoint.save()
    _record(actor, "webhook.changed", endpoint, fields=sorted(values))
    return endpoint


def delete_webhook(*, actor: Actor, endpoint: WebhookEndpoint) -> None:
    """Remove a webhook and its log."""
    _require(actor)
    _record(actor, "webhook.deleted", endpoint)
    endpoint.delete()


def ping_webhook(*, actor: Actor, endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Send a test. Raises `ConflictError` when the webhook is disabled."""
    _require(actor)
    if not endpoint.enabled:
        raise ConflictError("The webhook is disabled. Enable it first.")
    return _send([endpoint], WebhookEvent.PING, {"webhook_id": str(endpoint.id)})[0]


def replay_delivery(*, actor: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an event once more, under the id it had. Raises `ConflictError` while it is on its way."""
    _require(actor)
    if not delivery.endpoint.enabled:
        raise ConflictError("The webhook is disabled. Enable it first.")
    again = WebhookDelivery.objects.filter(id=delivery.id).exclude(
        status=WebhookDelivery.Status.PENDING
    )
    if not again.update(
        status=WebhookDelivery.Status.PENDING, attempts=0, next_attempt_at=timezone.now(), error=""
    ):
        raise ConflictError("The event is on its way already.")
    _record(actor, "webhook.replayed", delivery.endpoint, delivery=str(delivery.id))
    _schedule([delivery])
    delivery.refresh_from_db()
    return delivery


def rotate_webhook_secrets() -> tuple[int, int]:
    """Encrypt every secret with the first key. Returns how many that were, and how many no key opens."""
    done = unreadable = 0
    for endpoint in WebhookEndpoint.unscoped.only("id", "sealed_secret").iterator():
        try:
            sealed = reseal(endpoint.sealed_secret)
        except SealedError:
            unreadable += 1
            continue
        WebhookEndpoint.unscoped.filter(id=endpoint.id).update(sealed_secret=sealed)
        done += 1
    return done, unreadable


def _wanting(event: WebhookEvent) -> list[WebhookEndpoint]:
    return list(WebhookEndpoint.objects.filter(enabled=True, event_types__contains=[event]))


def _send(
    endpoints: Sequence[WebhookEndpoint], event: WebhookEvent, data: Mapping[str, Any]
) -> list[WebhookDelivery]:
    event_id = new_id()
    payload = {"type": event, "timestamp": timezone.now().isoformat(), "data": dict(data)}
    deliveries = [
        WebhookDelivery(
            tenant_id=endpoint.tenant_id,
            endpoint=endpoint,
            event_id=event_id,
            event_type=event,
            payload=payload,
        )
        for endpoint in endpoints
    ]
    if deliveries:
        WebhookDelivery.objects.bulk_create(deliveries)
        _schedule(deliveries)
    return deliveries


def _schedule(deliveries: Sequence[WebhookDelivery]) -> None:
    from accounts.tasks import deliver_webhook_task  # noqa: PLC0415 - tasks call services

    ids = [(str(delivery.tenant_id), str(delivery.id)) for delivery in deliveries]

    def queue() -> None:
        for pair in ids:
            deliver_webhook_task.delay(*pair)

    transaction.on_commit(queue)


def _require(actor: Actor) -> None:
    actor.require(Action.ADMIN)
    if actor.knowledge_base_ids is not None:
        raise ForbiddenError("Webhooks tell of every base; this key is limited to some.")


def _validate(endpoint: WebhookEndpoint) -> None:
    faults = []
    if not _is_usable(endpoint.url):
        faults.append(FieldError("url", "An https address without user name or password."))
    unknown = sorted(set(endpoint.event_types) - set(CHOOSABLE))
    if unknown or not endpoint.event_types:
        faults.append(FieldError("event_types", f"Choose among {', '.join(CHOOSABLE)}."))
    if faults:
        raise InvalidInputError("The webhook cannot be saved.", faults)


def _is_usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_private = settings.DEVELOPMENT or is_open_host(parts.hostname, port or 80)
    allowed = {"https", "http"} if is_private else {"https"}
    return bool(parts.scheme in allowed and parts.hostname and parts.username is None)


def _record(actor: Actor, action: str, endpoint: WebhookEndpoint, **detail: Any) -> None:
    # Not the address: its path or query may be a secret of the receiver.
    target = endpoint.description or urlsplit(endpoint.url).hostname or ""
    record_event(actor, action, target=target, target_id=endpoint.id, detail=detail)
