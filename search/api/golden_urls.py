"""Routes of golden queries and their runs."""

from __future__ import annotations

from django.urls import path

from search.api import golden as views

urlpatterns = [
    path("golden-queries/", views.GoldenQueriesView.as_view(), name="golden_queries"),
    path("golden-queries/<str:pk>/", views.GoldenQueryView.as_view(), name="golden_query"),
    path("golden-runs/<str:pk>/", views.GoldenRunView.as_view(), name="golden_run"),
    path(
        "knowledge-bases/<str:reference>/golden-runs/",
        views.GoldenRunsView.as_view(),
        name="golden_runs",
    ),
]
