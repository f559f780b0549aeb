"""What POST /search/ takes and gives beyond the ranking itself."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.access import Actor
from accounts.models import Tenant
from knowledge.models import KnowledgeBase
from search.api.serializers import SearchBodySerializer, render_outcome
from search.request import SearchRequest
from search.services.search import search
from tests.conftest import ApiFactory
from tests.workers import Workers


def _request(**body: Any) -> SearchRequest:
    serializer = SearchBodySerializer(data={"query": "heron", **body})
    serializer.is_valid(raise_exception=True)
    return serializer.to_request()


def test_the_options_reach_the_search() -> None:
    request = _request(facets=["source", "metadata.a", "source"], recency=0.5, neighbours=2)
    assert request.facets == ("source", "metadata.a")
    assert (request.recency, request.neighbours) == (0.5, 2)
    assert request.unavailable == []
    assert _request(facets=None).facets == ()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"facets": ["colour"]}, "facets"),
        ({"facets": [f"metadata.k{n}" for n in range(11)]}, "facets"),
        ({"recency": 1.1}, "recency"),
        ({"neighbours": 6}, "neighbours"),
    ],
)
def test_a_fault_is_named(
    tenant: Tenant, api: ApiFactory, body: dict[str, Any], field: str
) -> None:
    answer = api("search").post("/api/v1/search/", {"query": "x", **body}, format="json")
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_neighbours_and_total_are_shown(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    words = ("Herons", "白鹭", "Storks")
    text = "\n\n".join(f"# Part {n}\n\n{f'{word} wade. ' * 30}" for n, word in enumerate(words))
    workers.ingest(keeper, base, text, "birds.md")
    outcome = search(keeper, _request(neighbours=1, limit=1))
    body = render_outcome(outcome, base.id)
    assert body["total"]["value"] == 3
    [result] = body["results"]
    assert "Herons" in result["content"]
    [near] = result["neighbours"]
    assert (near["ordinal"], "白鹭" in near["content"]) == (1, True)
    assert result["duplicates"] == []
