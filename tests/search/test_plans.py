"""The plans of the statements that a search runs, as PostgreSQL makes them under the role of searches."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from knowledge.services import base_indexes
from knowledge.services.base_indexes import index_name, maintain_indexes
from knowledge.services.statistics import count_document
from search.retrieval.filters import compile_filter
from tests.search.conftest import Ask
from tests.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)  # indexes are built outside of transactions

# Copies of the one chunk there is, each with a word and a vector of its own, eight to a document.
COPIES = """
INSERT INTO knowledge_chunk (id, tenant_id, knowledge_base_id, document_id, ordinal, content, heading_path,
  start, "end", token_count, language, lexemes, lexical_weights, lexical_length, fingerprint, principals, live,
  enabled, embedding)
SELECT gen_random_uuid(), tenant_id, knowledge_base_id, document_id, n, content, heading_path, start, "end",
  token_count, language, ('word' || n || ' ' || lexemes::text)::tsvector, lexical_weights, 1, 0, principals,
  live, enabled, (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE n > 0)::halfvec(384)
FROM knowledge_chunk, generate_series(1, 4000) n
"""


@pytest.fixture
def large(
    keeper: Actor, base: KnowledgeBase, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> KnowledgeBase:
    """A base with both indexes of its own, beside another one in the same tables."""
    added = workers.ingest(keeper, base, "Herons wade.", title="Birds")
    with connection.cursor() as cursor:
        cursor.execute(COPIES)
        cursor.execute("ANALYZE knowledge_chunk")
    with tenant_scope(keeper.tenant_id):
        count_document(added.document.id, sign=1)
    monkeypatch.setattr(base_indexes, "LARGE", 4000)
    assert maintain_indexes(keeper.tenant_id, base.id) == ["embedding", "lexemes"]
    return base


def _plans(keeper: Actor, ask: Ask, query: str, **options: object) -> dict[str, str]:
    """The plans of the statements of one search that read chunks, by what they look for."""
    with CaptureQueriesContext(connection) as captured:
        ask(query, **options)
    statements = [entry["sql"] for entry in captured.captured_queries]
    kinds = {"words": "c.lexemes @@", "vectors": "halfvec(384)", "facts": "c.fingerprint"}
    plans = {}
    with tenant_scope(keeper.tenant_id), connection.cursor() as cursor:
        for kind, mark in kinds.items():
            for sql in statements:
                if mark in sql and sql.lstrip().startswith("SELECT"):
                    cursor.execute("EXPLAIN " + sql)
                    plans[kind] = "\n".join(row[0] for row in cursor.fetchall())
    return plans


def test_a_large_base_is_searched_by_its_own_indexes(
    keeper: Actor, large: KnowledgeBase, ask: Ask
) -> None:
    plans = _plans(keeper, ask, "word7 word9")
    assert index_name(large.id, "lexemes") in plans["words"]
    assert index_name(large.id, "embedding") in plans["vectors"]
    assert "Seq Scan on knowledge_chunk" not in plans["words"] + plans["vectors"] + plans["facts"]


def test_a_filter_that_leaves_much_keeps_the_order_of_the_vector_index(
    keeper: Actor, large: KnowledgeBase, ask: Ask
) -> None:
    condition = compile_filter({"field": "language", "op": "ne", "value": "zh"})
    plans = _plans(keeper, ask, "word7 word9", condition=condition)
    assert index_name(large.id, "embedding") in plans["vectors"]
    assert "Seq Scan on knowledge_chunk" not in plans["words"] + plans["vectors"]


def test_term_statistics_are_read_from_their_index(
    keeper: Actor, base: KnowledgeBase, ask: Ask
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO knowledge_termstatistic (id, tenant_id, knowledge_base_id, term, chunks) "
            "SELECT gen_random_uuid(), %s, %s, 'word' || n, 1 FROM generate_series(1, 5000) n",
            [keeper.tenant_id, base.id],
        )
        cursor.execute("ANALYZE knowledge_termstatistic")
    with CaptureQueriesContext(connection) as captured:
        ask("word7 word9")
    statement = next(
        entry["sql"]
        for entry in captured.captured_queries
        if "FROM knowledge_termstatistic" in entry["sql"]
    )
    with tenant_scope(keeper.tenant_id), connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + statement)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "term_by_base" in plan
    assert "Seq Scan" not in plan
