"""Routes of bases, documents and chunks."""

from __future__ import annotations

from django.urls import path

from knowledge.api import reembedding, views

urlpatterns = [
    path("knowledge-bases/", views.KnowledgeBasesView.as_view(), name="knowledge_bases"),
    path(
        "knowledge-bases/<str:reference>/", views.KnowledgeBaseView.as_view(), name="knowledge_base"
    ),
    path(
        "knowledge-bases/<str:reference>/documents/",
        views.DocumentsView.as_view(),
        name="documents",
    ),
    path(
        "knowledge-bases/<str:reference>/re-embedding/",
        reembedding.ReEmbeddingView.as_view(),
        name="re_embedding",
    ),
    path(
        "knowledge-bases/<str:reference>/re-embedding/roll-back/",
        reembedding.RollBackView.as_view(),
        name="re_embedding_roll_back",
    ),
    path("embedding-models/", reembedding.EmbeddingModelsView.as_view(), name="embedding_models"),
    path("documents/<str:pk>/", views.DocumentView.as_view(), name="document"),
    path("documents/<str:pk>/chunks/", views.DocumentChunksView.as_view(), name="document_chunks"),
    path(
        "documents/<str:pk>/original/",
        views.DocumentOriginalView.as_view(),
        name="document_original",
    ),
    path("documents/<str:pk>/text/", views.DocumentTextView.as_view(), name="document_text"),
    path(
        "documents/<str:pk>/reprocess/",
        views.DocumentReprocessView.as_view(),
        name="document_reprocess",
    ),
    path("chunks/<str:pk>/", views.ChunkView.as_view(), name="chunk"),
]
