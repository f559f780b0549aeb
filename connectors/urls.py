"""Addresses of the sign-in at sources."""

from __future__ import annotations

from django.urls import path

from connectors import views

urlpatterns = [
    path("connect/oauth/callback/", views.oauth_callback, name="connectors_oauth_callback"),
    path("connect/oauth/<uuid:pk>/", views.oauth_start, name="connectors_oauth_start"),
]
