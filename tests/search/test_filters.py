"""The filter language: every operator on every kind of field, and faults that are named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.access import Actor
from config.errors import InvalidInputError
from knowledge.models import KnowledgeBase
from search.request import Strategy
from search.retrieval.filters import compile_filter, filter_parts
from tests.search.conftest import Ask
from tests.workers import Workers


@pytest.fixture
def herons(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """Two documents that the same word finds."""
    workers.ingest(
        keeper, base, "# Grey\n\nA heron is grey.", "grey.md", title="Grey heron", external_id="g-1",
        source_uri="https://example.com/grey", metadata={"status": "approved", "n": 7, "tags": ["a", "b"], "due": "2026-01-31T01:00:00+02:00",
                  "people": [{"name": "Ana"}, {"name": "李雷"}], "note": "草稿", "none": None},
        updated_at=datetime(2026, 1, 10, tzinfo=UTC),
    )  # fmt: skip
    workers.ingest(
        keeper, base, "# White\n\nA heron is white.", "white.md", title="White heron draft",
        external_id="w-1", metadata={"status": "draft", "n": 10, "deep": {"x": True}, "due": "2026-02-01", "code": "7", "empty": []},
        updated_at=datetime(2026, 3, 1, tzinfo=UTC),
    )  # fmt: skip


# A filter and the documents, g or w, that pass it.
CASES: list[tuple[dict[str, Any], str]] = [
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
    ({"field": "metadata.due", "op": "gte", "value": "2026-01-31"}, "w"),
    ({"field": "metadata.due", "op": "lt", "value": "2026-01-30T23:30:00Z"}, "g"),
    ({"field": "metadata.due", "op": "gt", "value": "2026"}, "gw"),
    ({"field": "metadata.code", "op": "eq", "value": 7}, ""),
    ({"field": "metadata.n", "op": "eq", "value": 7.0}, "g"),
    ({"field": "metadata.n", "op": "eq", "value": "7"}, ""),
    ({"field": "metadata.deep.x", "op": "eq", "value": "true"}, ""),
    ({"field": "metadata.deep.x", "op": "ne", "value": False}, "gw"),
    ({"field": "metadata.people.name", "op": "eq", "value": "李雷"}, "g"),
    ({"field": "metadata.people.name", "op": "starts_with", "value": "AN"}, "g"),
    ({"field": "metadata.note", "op": "contains", "value": "稿"}, "g"),
    ({"field": "metadata.none", "op": "exists", "value": True}, ""),
    ({"field": "metadata.empty", "op": "exists"}, ""),
    ({"field": "metadata.status", "op": "in", "value": []}, ""),
    ({"field": "metadata.status", "op": "not_in", "value": []}, "gw"),
    ({"field": "title", "op": "contains", "value": "ＤＲＡＦＴ"}, ""),
    ({"field": "external_id", "op": "in", "value": ["g-1", ""]}, "g"),
    ({"not": {"field": "metadata.status", "op": "eq", "value": "draft"}}, "g"),
    ({"not": {"field": "metadata.absent", "op": "eq", "value": "x"}}, "gw"),
    ({"or": [{"field": "title", "op": "eq", "value": "Grey heron"}, {"field": "title", "op": "contains", "value": "draft"}]}, "gw"),
    ({"and": [{"field": "source", "op": "eq", "value": "upload"}, {"field": "metadata.n", "op": "eq", "value": 10}]}, "w"),
    ({"field": "title", "op": "eq", "value": "'; DROP TABLE knowledge_chunk; --"}, ""),
]  # fmt: skip


@pytest.mark.parametrize("strategy", [Strategy.LEXICAL, Strategy.SEMANTIC])
@pytest.mark.usefixtures("herons")
def test_filters_hold_in_each_leg(ask: Ask, strategy: Strategy) -> None:
    wrong = []
    for condition, expected in CASES:
        outcome = ask("heron", condition=compile_filter(condition), strategy=strategy)
        found = sorted({hit.chunk.document.external_id[0] for hit in outcome.hits})
        if found != sorted(expected):
            wrong.append((condition, found, expected))
    assert wrong == []


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
        ({"field": "metadata.a\ud800", "op": "exists"}, "filter.field", "Unknown field"),
        ({"field": "metadata.a", "op": "eq"}, "filter.value", "needs a value"),
        ({"field": "metadata.a", "op": "eq", "value": None}, "filter.value", "exists"),
        ({"field": "metadata.a", "op": "eq", "value": {}}, "filter.value", "text"),
        ({"field": "metadata.a", "op": "in", "value": ["x", None]}, "filter.value", "exists"),
        ({"field": "metadata.a", "op": "lt", "value": True}, "filter.value", "lt"),
        ({"field": "metadata.a", "op": "lt", "value": float("inf")}, "filter.value", "finite"),
        ({"field": "metadata.a", "op": "contains", "value": 7}, "filter.value", "text"),
        ({"field": "title", "op": "eq", "value": "\ud83d"}, "filter.value", "half"),
        ({"field": "title", "op": "in", "value": ["x"] * 1001}, "filter.value", "1000"),
        ({"field": "created_at", "op": "contains", "value": "2026"}, "filter.value", "contains"),
        ({"field": "created_at", "op": "eq", "value": "2026-02-30"}, "filter.value", "2026-01-31"),
        ({"field": ["title"], "op": "eq", "value": "x"}, "filter.field", "['title']"),
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


def test_the_parts_are_told_in_words() -> None:
    tree = {
        "and": [
            {"field": "source", "op": "in", "value": ["notion"]},
            {"and": [{"field": "language", "op": "eq", "value": "zh"}]},
            {"or": [
                {"field": "metadata.状态", "op": "eq", "value": "草稿"},
                {"not": {"field": "author", "op": "exists"}},
            ]},
        ]
    }  # fmt: skip
    parts = filter_parts(tree)
    assert [part.text for part in parts] == [
        'source in ["notion"]',
        'language eq "zh"',
        '(metadata.状态 eq "草稿" or not author exists true)',
    ]
    assert [(part.condition.on_chunk, part.condition.on_document) for part in parts] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert filter_parts(None) == []


def test_long_values_are_told_in_short() -> None:
    [part] = filter_parts({"field": "source", "op": "in", "value": ["x" * 30] * 100})
    assert part.text.startswith('source in ["xxx')
    assert len(part.text) < 250


def test_a_condition_knows_what_it_touches() -> None:
    tree = {
        "and": [{"field": "heading", "op": "eq", "value": "x"}, {"field": "title", "op": "exists"}]
    }
    condition = compile_filter(tree)
    assert condition is not None
    assert (condition.on_chunk, condition.on_document) == (True, True)
