"""The filter language: every operator on every kind of field, and faults that are named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.access import Actor
from config.errors import InvalidInputError
from knowledge.models import KnowledgeBase
from search.request import Strategy
from search.retrieval.filters import compile_filter
from tests.search.conftest import Ask
from tests.workers import Workers


@pytest.fixture
def herons(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """Two documents that the same word finds."""
    workers.ingest(
        keeper, base, "# Grey\n\nA heron is grey.", "grey.md", title="Grey heron", external_id="g-1",
        source_uri="https://example.com/grey", metadata={"status": "approved", "n": 7, "tags": ["a", "b"]},
        updated_at=datetime(2026, 1, 10, tzinfo=UTC),
    )  # fmt: skip
    workers.ingest(
        keeper, base, "# White\n\nA heron is white.", "white.md", title="White heron draft",
        external_id="w-1", metadata={"status": "draft", "n": 10, "deep": {"x": True}},
        updated_at=datetime(2026, 3, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"field": "title", "op": "eq", "value": "Grey heron"}, "g"),
        ({"field": "title", "op": "ne", "value": "Grey heron"}, "w"),
        ({"field": "title", "op": "contains", "value": "DRAFT"}, "w"),
        ({"field": "title", "op": "contains", "value": "%"}, ""),
        ({"field": "title", "op": "starts_with", "value": "grey"}, "g"),
        ({"field": "title", "op": "in", "value": ["Grey heron", "x"]}, "g"),
        ({"field": "title", "op": "not_in", "value": ["Grey heron"]}, "w"),
        ({"field": "source_uri", "op": "exists", "value": True}, "g"),
        ({"field": "source_uri", "op": "exists", "value": False}, "w"),
        ({"field": "external_id", "op": "gt", "value": "h"}, "w"),
        ({"field": "updated_at", "op": "gte", "value": "2026-03-01T00:00:00Z"}, "w"),
        ({"field": "updated_at", "op": "lt", "value": "2026-02-01"}, "g"),
        ({"field": "heading", "op": "eq", "value": "White"}, "w"),
        ({"field": "heading", "op": "ne", "value": "White"}, "g"),
        ({"field": "metadata.status", "op": "eq", "value": "approved"}, "g"),
        ({"field": "metadata.n", "op": "gt", "value": 7}, "w"),
        ({"field": "metadata.n", "op": "lte", "value": 7}, "g"),
        ({"field": "metadata.n", "op": "in", "value": [10, 11]}, "w"),
        ({"field": "metadata.tags", "op": "eq", "value": "b"}, "g"),
        ({"field": "metadata.tags", "op": "not_in", "value": ["b"]}, "w"),
        ({"field": "metadata.deep.x", "op": "eq", "value": True}, "w"),
        ({"field": "metadata.deep.x", "op": "exists", "value": True}, "w"),
        ({"field": "metadata.status", "op": "gt", "value": 3}, ""),
        ({"not": {"field": "metadata.status", "op": "eq", "value": "draft"}}, "g"),
        ({"not": {"field": "metadata.absent", "op": "eq", "value": "x"}}, "gw"),
        ({"or": [{"field": "title", "op": "eq", "value": "Grey heron"}, {"field": "title", "op": "contains", "value": "draft"}]}, "gw"),
        ({"and": [{"field": "source", "op": "eq", "value": "upload"}, {"field": "metadata.n", "op": "eq", "value": 10}]}, "w"),
        ({"field": "title", "op": "eq", "value": "'; DROP TABLE knowledge_chunk; --"}, ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strategy", [Strategy.LEXICAL, Strategy.SEMANTIC])
@pytest.mark.usefixtures("herons")
def test_filters_hold_in_each_leg(
    ask: Ask, condition: dict[str, Any], expected: str, strategy: Strategy
) -> None:
    outcome = ask("heron", condition=compile_filter(condition), strategy=strategy)
    assert sorted({hit.chunk.document.external_id[0] for hit in outcome.hits}) == sorted(expected)


@pytest.mark.parametrize(
    ("condition", "field", "named"),
    [
        ({"field": "colour", "op": "eq", "value": "x"}, "filter.field", "'colour'"),
        ({"field": "title", "op": "like", "value": "x"}, "filter.op", "'like'"),
        ({"field": "title", "op": "eq", "value": 3}, "filter.value", "text"),
        ({"field": "updated_at", "op": "gt", "value": "yesterday"}, "filter.value", "2026-01-31"),
        ({"and": [{"field": "title", "op": "in", "value": "x"}]}, "filter.and[0].value", "list"),
        ({"and": []}, "filter.and", "list"),
        ({"and": [{}], "or": []}, "filter", "'or'"),
        ({"not": "x"}, "filter.not", "object"),
        ({"field": "metadata.", "op": "eq", "value": "x"}, "filter.field", "'metadata.'"),
    ],
)
def test_a_fault_is_named_with_its_place(condition: dict[str, Any], field: str, named: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        compile_filter(condition)
    assert caught.value.errors[0].field == field
    assert named in caught.value.errors[0].message


def test_depth_is_bounded() -> None:
    tree: dict[str, Any] = {"field": "title", "op": "eq", "value": "x"}
    for _ in range(50):
        tree = {"not": tree}
    with pytest.raises(InvalidInputError):
        compile_filter(tree)
