"""Routes of keys, members and audit events."""

from __future__ import annotations

from django.urls import path

from accounts.api import resources

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
]
