"""Every address of the web server."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from config.health import healthz, readyz

# One door for people: rate limits and the second factor hold for the admin too.
# https://docs.allauth.org/en/latest/common/admin.html
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

api_v1: list[URLPattern | URLResolver] = [
    path("", include("accounts.api.urls")),
    path("", include("knowledge.api.urls")),
    path("", include("connectors.api.urls")),
    path("", include("search.api.urls")),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("", include("accounts.urls")),
    path("", include("connectors.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("api/v1/", include(api_v1)),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api_docs"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
handler400 = "accounts.api.problems.bad_request"
handler403 = "accounts.api.problems.permission_denied"
handler404 = "accounts.api.problems.page_not_found"
handler500 = "accounts.api.problems.server_error"
