"""Small inputs that broke other products, through ingestion and search: what must come first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from search.request import Strategy
from search.services.search import SearchOutcome
from tests.search.conftest import Ask
from tests.workers import Workers

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "bugcases"


def _cases() -> list[Any]:
    if not FOLDER.is_dir():
        reason = "the bug cases are not beside the checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*/case.json"))]
    searched = [
        case
        for case in cases
        if any(check["type"] == "search" and not check.get("kb") for check in case["checks"])
    ]
    return [pytest.param(case, id=case["id"]) for case in searched]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _check(check: dict[str, Any], outcome: SearchOutcome) -> None:
    assert outcome.hits, f"nothing found for {check['query']}"
    first = outcome.hits[0].chunk
    if "top_file" in check:
        assert first.document.filename == check["top_file"]
    for name in ("top_contains", "answer_contains"):
        if name in check:
            assert _squeezed(check[name]) in _squeezed(first.content)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("case", _cases())
def test_the_passage_that_was_lost_elsewhere_comes_first(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask, case: dict[str, Any]
) -> None:
    for name in case["files"]:
        workers.add(keeper, base, (FOLDER / case["id"] / name).read_bytes(), name)
    workers.drain()
    for check in case["checks"]:
        if check["type"] == "search":
            strategy = Strategy.LEXICAL if check.get("mode") == "keyword" else Strategy.HYBRID
            _check(check, ask(check["query"], strategy=strategy))
        if check["type"] == "result_count":
            assert len(ask(check["query"], limit=check["max"]).hits) == check["max"]


def test_a_base_without_text_beside_one_with_text(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    with tenant_scope(keeper.tenant_id):
        create_knowledge_base(actor=keeper, name="Blank")
        full = create_knowledge_base(actor=keeper, name="Full")
    workers.ingest(keeper, full, " \n ", "blank.txt")
    workers.ingest(keeper, full, "Our opening hours are nine to five.", "hours.txt")
    assert ask("opening hours", knowledge_bases=["blank"]).hits == []
    for names in (["full"], ["blank", "full"], ["blank", "full", base.slug]):
        outcome = ask("opening hours", knowledge_bases=names)
        assert [hit.chunk.document.filename for hit in outcome.hits] == ["hours.txt"]
        assert outcome.degraded == []
