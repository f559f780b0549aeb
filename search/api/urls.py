"""Routes of searching."""

from __future__ import annotations

from django.urls import include, path

from search.api import views
from search.api.facets import FacetsView
from search.api.why_not import WhyNotView

urlpatterns = [
    path("", include("search.api.golden_urls")),
    path("search/", views.SearchView.as_view(), name="search"),
    path("search/facets/", FacetsView.as_view(), name="search_facets"),
    path("search/why-not/", WhyNotView.as_view(), name="search_why_not"),
    path("searches/", views.SearchesView.as_view(), name="searches"),
    path("searches/<str:pk>/feedback/", views.FeedbackView.as_view(), name="search_feedback"),
]
