"""Routes of searching."""

from __future__ import annotations

from django.urls import include, path

from search.api import synonyms, views
from search.api.facets import FacetsView
from search.api.why_not import WhyNotView

urlpatterns = [
    path("", include("search.api.golden_urls")),
    path("search/", views.SearchView.as_view(), name="search"),
    path("search/facets/", FacetsView.as_view(), name="search_facets"),
    path("search/why-not/", WhyNotView.as_view(), name="search_why_not"),
    path("synonyms/", synonyms.SynonymSetsView.as_view(), name="synonyms"),
    path("synonyms/import/", synonyms.SynonymImportView.as_view(), name="synonyms_import"),
    path("synonyms/export/", synonyms.SynonymExportView.as_view(), name="synonyms_export"),
    path("synonyms/<str:pk>/", synonyms.SynonymSetView.as_view(), name="synonym_set"),
    path("searches/", views.SearchesView.as_view(), name="searches"),
    path("searches/<str:pk>/feedback/", views.FeedbackView.as_view(), name="search_feedback"),
]
