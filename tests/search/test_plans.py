"""The plans of the hot queries, as PostgreSQL makes them under the role that searches run as."""

from __future__ import annotations

from django.db import connection

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from tests.workers import Workers

# Copies of the one chunk there is, each with a word of its own.
COPIES = """
INSERT INTO knowledge_chunk (id, tenant_id, knowledge_base_id, document_id, ordinal, content, heading_path,
  start, "end", token_count, language, lexemes, lexical_length, principals, live, enabled)
SELECT gen_random_uuid(), tenant_id, knowledge_base_id, document_id, n, content, heading_path,
  start, "end", token_count, language, ('word' || n)::tsvector, 1, principals, live, enabled
FROM knowledge_chunk, generate_series(1, 5000) n
"""


def _plan(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(row[0] for row in cursor.fetchall())


def test_row_level_security_leaves_the_word_index_usable(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "Herons wade.")
    with connection.cursor() as cursor:
        cursor.execute(COPIES)
        # What vacuum does by itself in time; entries still in the pending list make the index dear.
        cursor.execute("SELECT gin_clean_pending_list('chunk_lexemes')")
        cursor.execute("ANALYZE knowledge_chunk")
    with tenant_scope(keeper.tenant_id):
        plan = _plan(
            f"SELECT id FROM knowledge_chunk WHERE tenant_id = '{keeper.tenant_id}' "
            f"AND knowledge_base_id = '{base.id}' AND live AND enabled "
            "AND lexemes @@ '''heron'''::tsquery"
        )
    assert "chunk_lexemes" in plan
    assert "Seq Scan" not in plan


def test_term_statistics_are_read_from_their_index(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO knowledge_termstatistic (id, tenant_id, knowledge_base_id, term, chunks) "
            "SELECT gen_random_uuid(), %s, %s, 'word' || n, 1 FROM generate_series(1, 5000) n",
            [keeper.tenant_id, base.id],
        )
        cursor.execute("ANALYZE knowledge_termstatistic")
    with tenant_scope(keeper.tenant_id):
        plan = _plan(
            "SELECT term, sum(chunks) FROM knowledge_termstatistic "
            f"WHERE tenant_id = '{keeper.tenant_id}' AND knowledge_base_id = '{base.id}' "
            "AND term IN ('word7', 'word9') GROUP BY term"
        )
    assert "term_by_base" in plan
    assert "Seq Scan" not in plan
