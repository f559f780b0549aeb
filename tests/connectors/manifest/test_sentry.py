"""Sentry, against its description."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.base import Checkpoint, Record, Text
from connectors.registry import connector_class
from tests.connectors.manifest.site import Site, ids, only, pulled
from tests.connectors.vendor import StartVendor, make_connector

pytestmark = [pytest.mark.shared, pytest.mark.allow_hosts(["127.0.0.1"])]
LIST = "GET /api/0/organizations/{organization_id_or_slug}/issues/"


def opened(url: str) -> Any:
    config = {"address": url, "organization": "acme"}
    return make_connector(connector_class("sentry"), config, {"token": "s3cret"})


def test_issues_fit_the_description(vendor: StartVendor) -> None:
    sentry = vendor("sentry")
    issue = {
        "id": "1",
        "title": "KeyError: {{ 7*7 }} 鹭",
        "shortId": "A-1",
        "lastSeen": "2025-03-01T10:00:00Z",
    }
    sentry.on(LIST, lambda _asked, answer: [{**answer[0], **issue}])
    connector = opened(sentry.url)
    assert connector.check().startswith("acme: ")
    events = pulled(connector)
    record = only(events, Record)[0]
    assert isinstance(record.body, Text)
    assert (record.external_id, record.title) == ("issue:1", "KeyError: {{ 7*7 }} 鹭")
    assert "A-1 in " in record.body.text
    assert sentry.asked(LIST) == [{"query": "", "sort": "date", "limit": "100"}]
    assert only(events, Checkpoint)[-1].cursor == {"since": {"issue": "2025-03-01T10:00:00+00:00"}}


def test_pages_end_where_the_header_says_so(site: Site) -> None:
    # The description has no headers of answers; https://docs.sentry.io/api/pagination/ has.
    from tests.connectors.manifest.site import Call, Reply

    def listing(call: Call) -> Reply:
        start = int(call.query.get("cursor", "0:0:0").split(":")[1])
        found = [{"id": str(n), "title": "x", "lastSeen": "2025-03-01"} for n in (start, start + 1)]
        link = (
            f'<{site.url}{call.path}?cursor=0:{start + 2}:0>; rel="next"; '
            f'results="{str(start < 4).lower()}"; cursor="0:{start + 2}:0"'
        )
        return Reply(found, headers={"Link": link})

    site.routes["/api/0/organizations/acme/issues/"] = listing
    assert ids(pulled(opened(site.url))) == [f"issue:{n}" for n in range(6)]
