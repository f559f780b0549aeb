"""Tenants and people are global; everything else here belongs to a tenant."""

from accounts.models.api_key import ApiKey, Scope
from accounts.models.audit_event import AuditEvent
from accounts.models.idempotency_record import IdempotencyRecord
from accounts.models.membership import Invitation, Membership, Role
from accounts.models.tenant import Tenant
from accounts.models.user import User
from accounts.models.webhook import WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "ApiKey", "AuditEvent", "IdempotencyRecord", "Invitation", "Membership", "Role", "Scope", "Tenant",
    "User", "WebhookDelivery", "WebhookEndpoint", "WebhookEvent",
]  # fmt: skip
