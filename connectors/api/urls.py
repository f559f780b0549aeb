"""Routes of connectors, connections and runs."""

from __future__ import annotations

from django.urls import path

from connectors.api import catalogue, hooks, records, runs, views

urlpatterns = [
    path("connectors/", catalogue.ConnectorsView.as_view(), name="connectors"),
    path("connectors/<str:kind>/", catalogue.ConnectorView.as_view(), name="connector"),
    path("connections/", views.ConnectionsView.as_view(), name="connections"),
    path("connections/<str:pk>/", views.ConnectionView.as_view(), name="connection"),
    path(
        "connections/<str:pk>/check/", views.ConnectionCheckView.as_view(), name="connection_check"
    ),
    path(
        "connections/<str:pk>/browse/",
        views.ConnectionBrowseView.as_view(),
        name="connection_browse",
    ),
    path(
        "connections/<str:pk>/pause/", views.ConnectionPauseView.as_view(), name="connection_pause"
    ),
    path(
        "connections/<str:pk>/resume/",
        views.ConnectionResumeView.as_view(),
        name="connection_resume",
    ),
    path(
        "connections/<str:pk>/approve-deletions/",
        views.DeletionsApprovalView.as_view(),
        name="connection_approve_deletions",
    ),
    path("connections/<str:pk>/sync/", runs.ConnectionSyncView.as_view(), name="connection_sync"),
    path("connections/<str:pk>/runs/", runs.ConnectionRunsView.as_view(), name="connection_runs"),
    path(
        "connections/<str:pk>/items/", runs.ConnectionItemsView.as_view(), name="connection_items"
    ),
    path(
        "connections/<str:pk>/items/<str:item_pk>/retry/",
        runs.ItemRetryView.as_view(),
        name="connection_item_retry",
    ),
    path(
        "connections/<str:pk>/retry-failed/",
        runs.RetryFailedView.as_view(),
        name="connection_retry_failed",
    ),
    path("connections/<str:pk>/records/", records.RecordsView.as_view(), name="connection_records"),
    path("sync-runs/<str:pk>/", runs.SyncRunView.as_view(), name="sync_run"),
    path("sync-runs/<str:pk>/cancel/", runs.SyncRunCancelView.as_view(), name="sync_run_cancel"),
    path("hooks/<str:pk>/", hooks.HookView.as_view(), name="connection_hook"),
]
