"""The Zendesk Help Center, against its description."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.base import Checkpoint, Complete, Deletion, Record, Text
from connectors.manifest.connector import SearchableManifestConnector
from tests.connectors.manifest.site import from_catalog, ids, only, pulled
from tests.connectors.vendor import Asked, StartVendor, Vendor, pages

pytestmark = [pytest.mark.shared, pytest.mark.allow_hosts(["127.0.0.1"])]
LIST = "GET /api/v2/help_center/articles"


def opened(vendor: Vendor) -> SearchableManifestConnector:
    secrets = {"username": "ana@acme.example", "password": "s3cret"}
    connector = from_catalog(
        "zendesk-help-center", vendor.url, {"subdomain": "acme"}, secrets, method="basic"
    )
    assert isinstance(connector, SearchableManifestConnector)
    return connector


def articles(vendor: Vendor, records: list[dict[str, Any]], size: int = 2) -> None:
    def listing(asked: Asked, answer: Any) -> Any:
        newest = sorted(records, key=lambda one: one["updated_at"], reverse=True)
        page, after = pages(newest, asked.query.get("page[after]"), size)
        meta = {"has_more": bool(after), "after_cursor": after or None, "before_cursor": "x"}
        example = {**answer["articles"][0], "draft": False, "section_id": 5}
        return {
            **answer, "meta": meta, "articles": [{**example, **one} for one in page],
            "sections": [{"id": 5, "name": "Vögel 鸟", "category_id": 6}],
            "categories": [{"id": 6, "name": "Nature"}],
        }  # fmt: skip

    vendor.on(LIST, listing)


def article(number: int, day: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "title": f"A{number}",
        "updated_at": f"2024-05-{day:02}T00:00:00Z",
        **more,
    }


def test_articles_with_section_and_category(vendor: StartVendor) -> None:
    zendesk = vendor("zendesk_help_center")
    records = [article(n, n, body="<h1>鹭</h1>") for n in range(1, 6)]
    records.append(article(9, 9, draft=True))
    articles(zendesk, records)
    connector = opened(zendesk)
    assert connector.check() == "Help Center of acme"
    events = pulled(connector)
    assert ids(events) == [f"article:{n}" for n in (5, 4, 3, 2, 1)]
    assert only(events, Deletion) == [Deletion("article:9")]
    assert only(events, Complete) == [Complete("article")]
    record = only(events, Record)[0]
    assert record.body == Text("<h1>鹭</h1>", "text/html")
    assert record.breadcrumbs == ("Nature", "Vögel 鸟")


def test_a_later_sync_ends_at_what_is_known(vendor: StartVendor) -> None:
    zendesk = vendor("zendesk_help_center")
    records = [article(n, n) for n in range(1, 9)]
    articles(zendesk, records)
    connector = opened(zendesk)
    cursor = only(pulled(connector), Checkpoint)[-1].cursor
    records[0] = article(1, 20)
    zendesk.forget()
    assert ids(pulled(connector, cursor)) == ["article:1", "article:8", "article:7", "article:6"]
    assert len(zendesk.asked(LIST)) == 2


def test_searching_in_the_help_center(vendor: StartVendor) -> None:
    zendesk = vendor("zendesk_help_center")
    hits = opened(zendesk).search("苍鹭 & Reiher", 1)
    assert zendesk.asked("GET /api/v2/help_center/articles/search") == [
        {"query": "苍鹭 & Reiher", "per_page": "1"}
    ]
    assert [(hit.external_id, hit.text) for hit in hits] == [
        ("article:28523513715859", "testing knowledge base")
    ]
