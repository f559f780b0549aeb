"""Celery tasks: each takes ids and calls one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from accounts.services import webhook_delivery


@shared_task(name="accounts.deliver_webhook")
def deliver_webhook_task(tenant_id: str, delivery_id: str) -> None:
    """Make one attempt to deliver an event."""
    webhook_delivery.deliver(UUID(tenant_id), UUID(delivery_id))


@shared_task(name="accounts.deliver_due_webhooks")
def deliver_due_webhooks_task() -> None:
    """Queue what is due. What is queued twice is sent once."""
    for tenant_id, delivery_id in webhook_delivery.due_deliveries():
        deliver_webhook_task.delay(str(tenant_id), str(delivery_id))


@shared_task(name="accounts.forget_old_webhook_deliveries")
def forget_old_webhook_deliveries_task() -> None:
    """Keep the log short."""
    webhook_delivery.forget_old_deliveries()
