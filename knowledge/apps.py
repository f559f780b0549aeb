"""Bases, documents, chunks, ingestion."""

from __future__ import annotations

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """What a tenant knows."""

    name = "knowledge"
    default_auto_field = "django.db.models.BigAutoField"
