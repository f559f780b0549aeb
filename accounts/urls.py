"""Addresses of the pages of people."""

from __future__ import annotations

from django.urls import path

from accounts import views

urlpatterns = [
    path("invitations/<str:token>/", views.accept_invitation, name="accept_invitation"),
    path("found-tenant/", views.found_tenant, name="found_tenant"),
    path("switch-tenant/", views.switch_tenant, name="switch_tenant"),
]
