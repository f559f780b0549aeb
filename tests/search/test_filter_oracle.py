"""The compiled filters and plain Python agree on every passage, whatever is drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import Chunk, Document, KnowledgeBase
from search.retrieval.filters import compile_filter, filter_parts
from tests.search import filter_oracle as oracle

pytestmark = pytest.mark.slow
# The same examples in every run, so that a change, not luck, decides; nothing is kept on disk.
FIXED = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
# Passages as rows with the types of the two tables, without writing them.
ROWS = """
SELECT n - 1 FROM jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS row (passage, n),
  jsonb_to_record(passage) AS d (title text, source varchar, source_uri varchar, external_id varchar,
    content_type varchar, author varchar, breadcrumbs varchar[], metadata jsonb, created_at timestamptz,
    updated_at timestamptz, source_created_at timestamptz, source_updated_at timestamptz, replaces_id uuid),
  LATERAL (SELECT passage->>'language' AS language,
    ARRAY(SELECT jsonb_array_elements_text(passage->'heading')) AS heading_path) c
WHERE {condition} ORDER BY n
"""


def _by_python(tree: oracle.Tree, passages: Sequence[oracle.Passage]) -> list[int]:
    return [n for n, passage in enumerate(passages) if oracle.matches(tree, passage)]


def _by_sql(tree: oracle.Tree, passages: Sequence[oracle.Passage]) -> list[int]:
    condition = compile_filter(tree)
    assert condition is not None
    with connection.cursor() as cursor:
        sql = ROWS.format(condition=condition.sql)
        cursor.execute(sql, [json.dumps(passages), *condition.parameters])
        return [n for (n,) in cursor.fetchall()]


def test_random_filters_on_random_passages(db: None) -> None:
    @settings(FIXED, max_examples=250)
    @given(passages=st.lists(oracle.passages, min_size=1, max_size=12), tree=oracle.trees)
    def agree(passages: list[oracle.Passage], tree: oracle.Tree) -> None:
        assert _by_sql(tree, passages) == _by_python(tree, passages)

    agree()


def test_a_filter_is_never_null(db: None) -> None:
    @settings(FIXED, max_examples=100)
    @given(passage=oracle.passages, tree=oracle.trees)
    def decided(passage: oracle.Passage, tree: oracle.Tree) -> None:
        ways = (tree, {"not": tree})
        assert [bool(_by_sql(way, [passage])) for way in ways].count(True) == 1

    decided()


def test_the_parts_of_a_filter_make_the_whole(db: None) -> None:
    @settings(FIXED, max_examples=100)
    @given(passage=oracle.passages, trees=st.lists(oracle.trees, min_size=1, max_size=4))
    def whole(passage: oracle.Passage, trees: list[oracle.Tree]) -> None:
        tree = {"and": trees}
        parts = filter_parts(tree)
        assert all(part.text for part in parts)
        with connection.cursor() as cursor:
            hold = []
            for part in parts:
                sql = ROWS.format(condition=part.condition.sql)
                cursor.execute(sql, [json.dumps([passage]), *part.condition.parameters])
                hold.append(bool(cursor.fetchall()))
        assert all(hold) == oracle.matches(tree, passage)

    whole()


def test_random_filters_on_the_tables_and_their_indexes(keeper: Actor, base: KnowledgeBase) -> None:
    """Many filters over one stored population, answered from indexes wherever there is one."""

    @settings(FIXED, max_examples=6, phases=[Phase.generate])
    @given(passages=st.lists(oracle.passages, min_size=20, max_size=20),
           trees=st.lists(oracle.leaves, min_size=30, max_size=30))  # fmt: skip
    def agree(passages: list[oracle.Passage], trees: list[oracle.Tree]) -> None:
        with tenant_scope(keeper.tenant_id):
            _store(base, passages)
            for tree in trees:
                assert _stored(tree) == _by_python(tree, passages), tree
            Document.objects.all().delete()

    agree()


def _store(base: KnowledgeBase, passages: Sequence[Any]) -> None:
    """Passage n is chunk n of a document of its own."""
    documents = []
    for n, passage in enumerate(passages):
        for name in ("created_at", "updated_at"):
            passage[f"source_{name}"] = passage[f"source_{name}"] or passage[name]
        passage["external_id"] += f"#{n}"  # unique in a base
        passage["language"] = passage["language"][:8]
        names = (
            *oracle.TEXTS[:-1],
            "breadcrumbs",
            "metadata",
            *(f"source_{t}" for t in oracle.TIMES),
        )
        facts = {name: passage[name] for name in names}
        documents.append(Document(tenant_id=base.tenant_id, knowledge_base=base, **facts))
    Document.objects.bulk_create(documents)
    Chunk.objects.bulk_create(
        Chunk(tenant_id=base.tenant_id, knowledge_base=base, document=document, ordinal=n, content="x",
              start=0, end=1, language=passage["language"], heading_path=passage["heading"])
        for n, (document, passage) in enumerate(zip(documents, passages, strict=True))
    )  # fmt: skip


def _stored(tree: oracle.Tree) -> list[int]:
    condition = compile_filter(tree)
    assert condition is not None
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "SELECT c.ordinal FROM knowledge_document d JOIN knowledge_chunk c "
            "ON c.tenant_id = d.tenant_id AND c.document_id = d.id "
            f"WHERE {condition.sql} ORDER BY c.ordinal",
            condition.parameters,
        )
        return [n for (n,) in cursor.fetchall()]
