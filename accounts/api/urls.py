"""Routes of keys, members and audit events."""

from __future__ import annotations

from django.urls import path

from accounts.api import resources, webhooks

urlpatterns = [
    path("me/", resources.MeView.as_view(), name="me"),
    path(
        "api-keys/",
        resources.ApiKeyViewSet.as_view({"get": "list", "post": "create"}),
        name="api_keys",
    ),
    path(
        "api-keys/<uuid:pk>/",
        resources.ApiKeyViewSet.as_view({"delete": "destroy"}),
        name="api_key",
    ),
    path(
        "members/",
        resources.MemberViewSet.as_view({"get": "list", "post": "create"}),
        name="members",
    ),
    path(
        "members/<uuid:pk>/",
        resources.MemberViewSet.as_view({"patch": "partial_update", "delete": "destroy"}),
        name="member",
    ),
    path(
        "audit-events/", resources.AuditEventViewSet.as_view({"get": "list"}), name="audit_events"
    ),
    path(
        "webhooks/",
        webhooks.WebhookViewSet.as_view({"get": "list", "post": "create"}),
        name="webhooks",
    ),
    path(
        "webhooks/<uuid:pk>/",
        webhooks.WebhookViewSet.as_view(
            {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
        ),
        name="webhook",
    ),
    path(
        "webhooks/<uuid:pk>/ping/",
        webhooks.WebhookDeliveryViewSet.as_view({"post": "ping"}),
        name="webhook_ping",
    ),
    path(
        "webhooks/<uuid:pk>/deliveries/",
        webhooks.WebhookDeliveryViewSet.as_view({"get": "list"}),
        name="webhook_deliveries",
    ),
    path(
        "webhook-deliveries/<uuid:pk>/",
        webhooks.WebhookDeliveryViewSet.as_view({"get": "retrieve"}),
        name="webhook_delivery",
    ),
    path(
        "webhook-deliveries/<uuid:pk>/replay/",
        webhooks.WebhookDeliveryViewSet.as_view({"post": "replay"}),
        name="webhook_replay",
    ),
]
