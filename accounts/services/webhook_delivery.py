"""Sending events to webhooks: signed as Standard Webhooks has it, repeated until they arrive.

Deliveries are rows; a lost task or a killed worker loses none, because `beat` queues what is due. The attempts
of one event share an id, as a receiver may have got what it did not answer.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Manager, Q, QuerySet
from django.utils import timezone
from standardwebhooks import Webhook

from accounts.access import Action, Actor
from accounts.models import WebhookDelivery, WebhookEndpoint
from accounts.services.audit import record_event
from accounts.tenancy import tenant_scope
from config.errors import AppError
from config.http import HttpClient, Pacing
from config.http_answers import retry_after_s

_DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (10, 60, 300, 1800, 7200, 21600, 43200, 86400)
)
_LEASE = timedelta(minutes=5)  # an attempt takes no longer, or its worker is gone
_DISABLED_AFTER = timedelta(days=5)
_PROBED_EVERY = timedelta(seconds=30)  # an endpoint that fails, so that it holds up nobody else's
_KEPT = timedelta(days=30)
_MOST_AT_ONCE = 500
_TIMEOUT_S = 15.0
_GONE = 410
_ANY_ERROR = frozenset(range(400, 600))

Status = WebhookDelivery.Status


@dataclass(frozen=True, slots=True)
class _Result:
    """What came of an attempt."""

    error: str = ""
    status_code: int | None = None
    wait: timedelta = timedelta(0)  # what the receiver asks for


def deliver(tenant_id: UUID, delivery_id: UUID) -> None:
    """Make one attempt, if one is due and nobody else makes it."""
    delivery = _claim(tenant_id, delivery_id)
    if delivery is None:
        return
    result = _post(delivery)
    with tenant_scope(tenant_id):
        endpoint = (
            WebhookEndpoint.objects.select_for_update().filter(id=delivery.endpoint_id).first()
        )
        if endpoint is not None:
            _record(delivery, endpoint, result)


def due_deliveries() -> list[tuple[UUID, UUID]]:
    """Tenant and id of what is to be sent now, the oldest first."""
    now = timezone.now()
    due = WebhookDelivery.unscoped.filter(
        Q(endpoint__failing_since=None) | Q(endpoint__in=_to_probe(WebhookEndpoint.unscoped, now)),
        status=Status.PENDING,
        next_attempt_at__lte=now,
        endpoint__enabled=True,
    )
    rows = due.order_by("next_attempt_at").values_list("tenant_id", "id")
    return list(rows[:_MOST_AT_ONCE])


def forget_old_deliveries() -> None:
    """Remove what is older than the log is kept."""
    WebhookDelivery.unscoped.filter(created_at__lt=timezone.now() - _KEPT).delete()


def _to_probe(endpoints: Manager[WebhookEndpoint], now: datetime) -> QuerySet[WebhookEndpoint]:
    """Those that fail and have not been tried for a while."""
    quiet = Q(probed_at=None) | Q(probed_at__lt=now - _PROBED_EVERY)
    return endpoints.filter(quiet, failing_since__isnull=False)


def _claim(tenant_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    now = timezone.now()
    with tenant_scope(tenant_id):
        due = WebhookDelivery.objects.filter(
            id=delivery_id, status=Status.PENDING, next_attempt_at__lte=now, endpoint__enabled=True
        )
        found: WebhookDelivery | None = due.select_related("endpoint").first()
        if found is None:
            return None
        if found.endpoint.failing_since is not None:
            probes = _to_probe(WebhookEndpoint.objects, now).filter(id=found.endpoint_id)
            if not probes.update(probed_at=now):
                return None  # it stays due
        if not due.update(
            attempts=F("attempts") + 1, attempted_at=now, next_attempt_at=now + _LEASE
        ):
            return None
        found.refresh_from_db(fields=["attempts"])
    return found


def _post(delivery: WebhookDelivery) -> _Result:
    client = HttpClient(
        pacing=Pacing(attempts=1, read_timeout_s=_TIMEOUT_S), follow_redirects=False
    )
    try:
        body, headers = signed_message(delivery, timezone.now())
        answer = client.request(
            "POST", delivery.endpoint.url, data=body, headers=headers, expected=_ANY_ERROR
        )
    except AppError as error:
        return _Result(error.message)
    if answer.status_code < 300:
        return _Result(status_code=answer.status_code)
    message = f"The receiver answered {answer.status_code}."
    wait = min(retry_after_s(answer.headers) or 0.0, _DELAYS[-1].total_seconds())
    return _Result(message, answer.status_code, timedelta(seconds=wait))


def signed_message(delivery: WebhookDelivery, at: datetime) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an attempt."""
    body = json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":"))
    message_id = f"msg_{delivery.event_id.hex}"
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(delivery.endpoint.secret).sign(message_id, at, body),
    }
    return body.encode(), headers


def _record(delivery: WebhookDelivery, endpoint: WebhookEndpoint, result: _Result) -> None:
    """The state of delivery and endpoint after an attempt."""
    delivery.status_code, delivery.error = result.status_code, result.error
    delivery.next_attempt_at = None
    if not result.error:
        delivery.status = Status.SUCCEEDED
        WebhookEndpoint.objects.filter(id=endpoint.id).update(failing_since=None)
    else:
        _put_off(delivery, result.wait)
        _count_failure(endpoint, result)
    delivery.save(update_fields=["status", "status_code", "error", "next_attempt_at"])


def _put_off(delivery: WebhookDelivery, wait: timedelta) -> None:
    if delivery.attempts > len(_DELAYS):
        delivery.status = Status.FAILED
        return
    delay = max(_DELAYS[delivery.attempts - 1], wait)
    delivery.next_attempt_at = timezone.now() + delay * random.uniform(1, 1.1)  # noqa: S311


def _count_failure(endpoint: WebhookEndpoint, result: _Result) -> None:
    now = timezone.now()
    endpoint.failing_since = endpoint.failing_since or now
    is_gone = result.status_code == _GONE
    if is_gone or now - endpoint.failing_since > _DISABLED_AFTER:
        endpoint.enabled = False
        since = "" if is_gone else f" since {endpoint.failing_since:%Y-%m-%d %H:%M} UTC"
        endpoint.disabled_reason = f"Nothing has arrived there{since}. {result.error}"
        actor = Actor(endpoint.tenant_id, "webhooks", frozenset({Action.READ}))
        record_event(actor, "webhook.disabled", target=str(endpoint.id), target_id=endpoint.id)
    endpoint.save(update_fields=["failing_since", "enabled", "disabled_reason"])
