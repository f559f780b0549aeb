"""Intercom, against its description."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.base import Checkpoint, Complete, Failure, Record, Text
from connectors.manifest.connector import ManifestConnector
from tests.connectors.manifest.site import from_catalog, ids, only, pulled
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, pages

pytestmark = [pytest.mark.shared, pytest.mark.allow_hosts(["127.0.0.1"])]
ITEM = "GET /conversations/{conversation_id}"


def opened(vendor: Vendor) -> ManifestConnector:
    return from_catalog("intercom", vendor.url, {}, {"token": "s3cret"})


def searched(vendor: Vendor, kind: str, times: dict[str, int], bodies: list[Any]) -> None:
    """Results newer than what is asked for, two to a page."""

    def search(asked: Asked, answer: Any) -> Any:
        bodies.append(asked.body)
        since = asked.body["query"]["value"]
        found = [name for name, at in times.items() if at > since]
        page, after = pages(found, asked.body["pagination"].get("starting_after"), 2)
        following = {"next": {"per_page": 2, "starting_after": after}} if after else {}
        records = [{**answer[kind][0], "id": name, "updated_at": times[name]} for name in page]
        return {**answer, kind: records, "pages": {"type": "pages", **following}}

    vendor.on(f"POST /{kind}/search", search)


def one(asked: Asked, answer: Any) -> Any:
    replies = answer["conversation_parts"]
    part = {
        **replies["conversation_parts"][0], "body": "<p>苍鹭 {{ 7*7 }}</p>", "created_at": 1740000060,
        "author": {"type": "admin", "id": "7", "name": "Bo", "email": "bo@x.example"},
    }  # fmt: skip
    source = {**answer["source"], "body": "<p>Wo sind die <b>Reiher</b>?</p>", "subject": ""}
    source["author"] = {**source["author"], "name": "Ana"}
    return {
        **answer, "id": asked.path["conversation_id"], "title": None, "created_at": 1740000000,
        "source": source, "conversation_parts": {**replies, "conversation_parts": [part]},
    }  # fmt: skip


def test_conversations_are_read_with_their_replies(vendor: StartVendor) -> None:
    intercom, bodies = vendor("intercom"), list[Any]()
    searched(intercom, "conversations", {"1": 1740000000, "2": 1740000100, "3": 1740000200}, bodies)
    searched(intercom, "tickets", {"9": 1740000000}, [])
    intercom.on(ITEM, one)
    connector = opened(intercom)
    assert connector.check() == "MyApp 1 as Ciaran1 Lee"
    events = pulled(connector)
    assert ids(events) == ["conversation:1", "conversation:2", "conversation:3", "ticket:9"]
    assert only(events, Complete) == [Complete("conversation"), Complete("ticket")]
    record = only(events, Record)[0]
    assert isinstance(record.body, Text)
    assert record.title == "Wo sind die Reiher?"
    assert record.body.text == (
        "## Ana, 2025-02-19\n\nWo sind die **Reiher**?\n\n## Bo, 2025-02-19\n\n苍鹭 {{ 7*7 }}"
    )
    assert bodies[0]["query"]["value"] == 0
    bodies.clear()
    pulled(connector, only(events, Checkpoint)[-1].cursor)
    assert bodies[0]["query"]["value"] == 1740000200 - 60


def test_a_conversation_that_cannot_be_read_is_a_failure(vendor: StartVendor) -> None:
    intercom = vendor("intercom")
    searched(intercom, "conversations", {"1": 1740000000, "2": 1740000100}, [])
    searched(intercom, "tickets", {}, [])

    def item(asked: Asked, answer: Any) -> Any:
        if asked.path["conversation_id"] == "1":
            raise Refusal(403)
        return one(asked, answer)

    intercom.on(ITEM, item)
    events = pulled(opened(intercom))
    assert ids(events) == ["conversation:2"]
    assert [failure.external_id for failure in only(events, Failure)] == ["conversation:1"]
