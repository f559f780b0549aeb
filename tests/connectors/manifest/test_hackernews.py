"""Hacker News, against its description."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from connectors.base import Deletion, LiveSearch, Notice, Record, Text
from connectors.manifest.connector import ManifestConnector, connector_from
from connectors.manifest.loading import parse_manifest
from connectors.registry import CATALOG
from tests.connectors.manifest.site import Reply, Site, from_catalog, ids, only, pulled, served
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector

pytestmark = [pytest.mark.shared, pytest.mark.allow_hosts(["127.0.0.1"])]


def opened(vendor: Vendor, *feeds: str) -> ManifestConnector:
    config = {"feeds": list(feeds)} if feeds else {}
    return from_catalog("hackernews", vendor.url, config, {}, method="none")


def item(asked: Asked, example: dict[str, Any]) -> Any:
    number = int(asked.path["id"])
    text = {"text": "<p>苍鹭 &amp; <i>Reiher</i></p>"} if number == 1 else {}
    return {**example, "id": number, "title": f"Story {number} {{{{ 7*7 }}}}", **text}


def test_stories_of_the_chosen_lists(vendor: StartVendor) -> None:
    hn = vendor("hackernews")
    hn.on("GET /v0/maxitem.json", 42)
    hn.on("GET /v0/topstories.json", list(range(1, 101)))
    hn.on("GET /v0/beststories.json", [30, 31])
    hn.on("GET /v0/item/{id}.json", item)
    connector = opened(hn, "top", "best")
    assert connector.check() == "Hacker News, item 42"
    events = pulled(connector)
    assert ids(events) == [f"item:{n}" for n in [*range(1, 31), 30, 31]]
    first = only(events, Record)[0]
    assert isinstance(first.body, Text)
    assert first.title == "Story 1 {{ 7*7 }}"
    assert "苍鹭 & *Reiher*" in first.body.text
    assert first.url == "https://news.ycombinator.com/item?id=1"
    assert first.created_at is not None
    assert first.created_at.year == 2007


def test_a_list_that_fails_is_a_warning(vendor: StartVendor) -> None:
    hn = vendor("hackernews")

    def refuse(_asked: Asked, _example: Any) -> Any:
        raise Refusal(403)

    hn.on("GET /v0/topstories.json", refuse)
    hn.on("GET /v0/newstories.json", [1])
    hn.on("GET /v0/item/{id}.json", item)
    events = pulled(opened(hn, "top", "new"))
    assert ids(events) == ["item:1"]
    assert "item/top could not be read" in only(events, Notice)[0].message


def test_dead_stories_go(vendor: StartVendor) -> None:
    hn = vendor("hackernews")
    hn.on("GET /v0/topstories.json", [1, 2])
    hn.on(
        "GET /v0/item/{id}.json",
        lambda asked, example: {**item(asked, example), "dead": asked.path["id"] == "2"},
    )
    events = pulled(opened(hn))
    assert (ids(events), only(events, Deletion)) == (["item:1"], [Deletion("item:2")])


def by_algolia(site: Site, hn: Vendor, config: dict[str, Any]) -> ManifestConnector:
    """The connector with both of its addresses on loopback."""
    text = (CATALOG / "hackernews.yml").read_text().replace("https://hn.algolia.com", site.url)
    data = yaml.safe_load(text) | {"base_url": hn.url}
    return make_connector(
        connector_from(parse_manifest(data, "hackernews.yml")), config, {}, method="none"
    )


# As https://hn.algolia.com/api describes it.
FOUND = {
    "objectID": "7", "title": "Show HN: 苍鹭", "url": "https://heron.example", "author": "ana", "points": 3,
    "num_comments": 2, "story_text": None, "created_at_i": 1_750_000_000,
}  # fmt: skip


def test_queries_find_what_is_not_on_a_list(vendor: StartVendor) -> None:
    hn, site = vendor("hackernews"), Site()
    hn.on("GET /v0/topstories.json", [])
    site.routes["/api/v1/search_by_date"] = {"hits": [FOUND]}
    with served(site) as site.url:
        events = pulled(by_algolia(site, hn, {"queries": ["苍鹭 & herons"], "tags": "show_hn"}))
    assert ids(events) == ["item:7"], "the id that it has on a list"
    assert site.asked("/api/v1/search_by_date") == [
        {"query": "苍鹭 & herons", "tags": "show_hn", "hitsPerPage": "20"}
    ]
    (record,) = only(events, Record)
    assert (record.title, record.author) == ("Show HN: 苍鹭", "ana")
    assert record.metadata["link"] == "https://heron.example"


def test_a_query_that_fails_loses_nothing_else(vendor: StartVendor) -> None:
    hn, site = vendor("hackernews"), Site()
    hn.on("GET /v0/topstories.json", [1])
    hn.on("GET /v0/item/{id}.json", item)
    site.routes["/api/v1/search_by_date"] = lambda call: (
        Reply({}, 400) if call.query["query"] == "bad" else {"hits": [FOUND]}
    )
    with served(site) as site.url:
        events = pulled(by_algolia(site, hn, {"queries": ["bad", "good"]}))
    assert ids(events) == ["item:1", "item:7"]
    assert "found/bad could not be read" in only(events, Notice)[0].message


def test_it_is_searched_live(vendor: StartVendor) -> None:
    hn, site = vendor("hackernews"), Site()
    site.routes["/api/v1/search"] = {"hits": [FOUND, {**FOUND, "objectID": "8"}]}
    with served(site) as site.url:
        connector = by_algolia(site, hn, {})
        assert isinstance(connector, LiveSearch)
        hits = connector.search("苍鹭", 1)
    assert [(hit.external_id, hit.title) for hit in hits] == [("item:7", "Show HN: 苍鹭")]
    assert site.asked("/api/v1/search")[0]["query"] == "苍鹭"
