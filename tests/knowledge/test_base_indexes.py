"""A base's own indexes come and go with its size, and survive what interrupts their making."""

from __future__ import annotations

import pytest
from django.db import connection

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from knowledge.services import base_indexes
from knowledge.services.base_indexes import (
    bases_out_of_line,
    drop_orphans,
    index_name,
    maintain_indexes,
)
from knowledge.services.knowledge_bases import delete_knowledge_base
from tests.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_indexes(transactional_db: None) -> None:
    """Those of other tests are gone."""
    drop_orphans()


@pytest.fixture
def grown(
    keeper: Actor, base: KnowledgeBase, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> KnowledgeBase:
    """A base that counts as large with its three passages."""
    for number in range(3):
        workers.ingest(keeper, base, f"Heron number {number} wades.", f"{number}.txt")
    monkeypatch.setattr(base_indexes, "LARGE", 3)
    monkeypatch.setattr(base_indexes, "SMALL", 2)
    return base


def _valid_indexes() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            r"WHERE c.relname LIKE 'own\_%%' AND i.indisvalid ORDER BY 1"
        )
        return [row[0] for row in cursor.fetchall()]


def test_a_large_base_gets_an_index_of_words_and_one_of_vectors(
    keeper: Actor, grown: KnowledgeBase
) -> None:
    assert bases_out_of_line() == [(keeper.tenant_id, grown.id)]
    assert maintain_indexes(keeper.tenant_id, grown.id) == ["embedding", "lexemes"]
    assert _valid_indexes() == [
        index_name(grown.id, "embedding"),
        index_name(grown.id, "lexemes"),
    ]
    assert bases_out_of_line() == []


def test_making_them_again_changes_nothing(keeper: Actor, grown: KnowledgeBase) -> None:
    first = maintain_indexes(keeper.tenant_id, grown.id)
    assert maintain_indexes(keeper.tenant_id, grown.id) == first
    assert len(_valid_indexes()) == 2


def test_a_small_base_has_none(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    workers.ingest(keeper, base, "Herons wade.")
    assert maintain_indexes(keeper.tenant_id, base.id) == []
    assert _valid_indexes() == []


def test_a_half_built_index_is_built_anew(keeper: Actor, grown: KnowledgeBase) -> None:
    name = index_name(grown.id, "lexemes")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {name} ON knowledge_chunk USING gin (lexemes)")
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name]
        )
    maintain_indexes(keeper.tenant_id, grown.id)
    assert name in _valid_indexes()


def test_a_base_that_shrinks_gives_them_up(keeper: Actor, grown: KnowledgeBase) -> None:
    maintain_indexes(keeper.tenant_id, grown.id)
    base_indexes.LARGE, base_indexes.SMALL = 100, 50
    assert bases_out_of_line() == [(keeper.tenant_id, grown.id)]
    assert maintain_indexes(keeper.tenant_id, grown.id) == []
    assert _valid_indexes() == []


def test_those_of_a_deleted_base_are_removed(keeper: Actor, grown: KnowledgeBase) -> None:
    maintain_indexes(keeper.tenant_id, grown.id)
    with tenant_scope(keeper.tenant_id):
        delete_knowledge_base(actor=keeper, base=grown)
    assert drop_orphans() == 2
    assert _valid_indexes() == []


def test_while_another_process_builds_nothing_is_done(
    keeper: Actor, grown: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_lock(%s, hashtext(%s))",
                [base_indexes._BUILD_LOCK, str(grown.id)],
            )
            assert maintain_indexes(keeper.tenant_id, grown.id) == []
            assert _valid_indexes() == []
    finally:
        other.close()
