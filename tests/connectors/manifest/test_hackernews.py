"""Hacker News, against its description."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.base import Deletion, Notice, Record, Text
from connectors.manifest.connector import ManifestConnector
from tests.connectors.manifest.site import from_catalog, ids, only, pulled
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor

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
