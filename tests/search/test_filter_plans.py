"""Selective filters are answered from indexes under the role that searches run as."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import Document, KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from search.retrieval.filters import compile_filter

# Copies of one document, in two bases. Each value below is that of few among many.
COPIES = """
INSERT INTO knowledge_document (id, tenant_id, knowledge_base_id, title, filename, content_type, language,
  source, source_uri, external_id, author, breadcrumbs, metadata, principals, boost, original, size, content_hash,
  extracted_text, status, stage, error_code, error, warnings, coverage_unit, coverage_found, coverage_indexed,
  chunk_count, embedded_count, attempts, source_created_at, created_at, updated_at)
SELECT gen_random_uuid(), tenant_id, base, title, filename, CASE WHEN n %% 1000 = 7 THEN 'text/csv' ELSE 'text/html' END,
  language, CASE WHEN n %% 1000 = 7 THEN 'notion' ELSE 'web' END, 'https://example.com/' || n, 'x' || n, 'author' || n %% 3000,
  breadcrumbs, jsonb_build_object('n', n, 'status', CASE WHEN n %% 1000 = 7 THEN '草稿' ELSE 'done' END,
  'deep', jsonb_build_object('tags', jsonb_build_array('t' || n, 'u'))), principals, boost, original, size,
  content_hash, extracted_text, status, stage, error_code, error, warnings, coverage_unit, coverage_found,
  coverage_indexed, chunk_count, embedded_count, attempts,
  CASE WHEN n %% 2 = 0 THEN timestamptz '2020-01-01Z' + n * interval '1 hour' END,
  timestamptz '2020-01-01Z' + n * interval '1 hour', timestamptz '2020-01-01Z' + n * interval '1 hour'
FROM knowledge_document, generate_series(1, 12000) n, unnest(%s::uuid[]) base
"""


@pytest.fixture
def many(keeper: Actor, base: KnowledgeBase) -> KnowledgeBase:
    """A base with 12,000 documents beside another one that is the same."""
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
        Document(knowledge_base=base, title="One").save()
    with connection.cursor() as cursor:
        cursor.execute(COPIES, [[base.id, other.id]])
        # What vacuum does by itself in time; entries still in the pending list make the index dear.
        cursor.execute("SELECT gin_clean_pending_list('document_by_metadata')")
        cursor.execute("ANALYZE knowledge_document")
    return base


@pytest.mark.slow
def test_selective_filters_use_indexes(keeper: Actor, many: KnowledgeBase) -> None:
    cases: list[tuple[str, str, Any, str]] = [
        ("source", "eq", "notion", "document_by_source"),
        ("source", "in", ["notion", "wiki"], "document_by_source"),
        ("author", "eq", "author7", "document_by_author"),
        ("content_type", "eq", "text/csv", "document_by_content_type"),
        ("source_uri", "eq", "https://example.com/7", "document_by_source_uri"),
        ("source_uri", "in", ["https://example.com/7"], "document_by_source_uri"),
        ("external_id", "eq", "x7", "one_document_per_external_id"),
        ("external_id", "in", ["x7", "x8"], "one_document_per_external_id"),
        ("created_at", "lt", "2020-01-02", "document_by_created_at"),
        ("updated_at", "gte", "2021-05-14T20:00:00Z", "document_by_updated_at"),
        ("metadata.n", "eq", 7, "document_by_metadata"),
        ("metadata.n", "in", [-7, 8, 9.5], "document_by_metadata"),
        ("metadata.status", "eq", "草稿", "document_by_metadata"),
        ("metadata.deep.tags", "eq", "t7", "document_by_metadata"),
    ]
    plans = {
        (field, op): _plan(keeper, many, {"field": field, "op": op, "value": value})
        for field, op, value, _ in cases
    }
    wrong = [plans[field, op] for field, op, _, index in cases if index not in plans[field, op]]
    assert wrong == []
    assert not [plan for plan in plans.values() if "Seq Scan" in plan]


def _plan(keeper: Actor, base: KnowledgeBase, tree: dict[str, Any]) -> str:
    condition = compile_filter(tree)
    assert condition is not None
    with tenant_scope(keeper.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN SELECT d.id FROM knowledge_document d WHERE d.tenant_id = %s "
            f"AND d.knowledge_base_id = ANY(%s) AND {condition.sql}",
            [keeper.tenant_id, [base.id], *condition.parameters],
        )
        return "\n".join(row[0] for row in cursor.fetchall())
