"""Every style of pages to its end, and the refusal to go in circles."""

from __future__ import annotations

from typing import Any

import pytest

from config.errors import RejectedError
from connectors.base import Checkpoint, Complete
from tests.connectors.manifest.site import (
    Call,
    Reply,
    Site,
    ids,
    manifest,
    only,
    opened,
    pulled,
    stream,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
RECORDS = [{"id": number, "title": f"Title {number}", "body": "鹭"} for number in range(1, 6)]
ALL = [f"issue:{number}" for number in range(1, 6)]
SIZE = 2


def part(start: int) -> list[dict[str, Any]]:
    return RECORDS[start : start + SIZE]


def read(site: Site, route: Any, **more: Any) -> list[str]:
    site.routes["/issues"] = route
    events = pulled(opened(manifest(stream("issue", complete=True, **more), url=site.url)))
    assert only(events, Complete) == [Complete("issue")]
    assert only(events, Checkpoint)[-1] == Checkpoint({})
    return ids(events)


def test_page_numbers_end_at_an_empty_page(site: Site) -> None:
    def route(call: Call) -> Any:
        return part((int(call.query["page"]) - 1) * SIZE)

    assert read(site, route, pagination={"style": "page"}) == ALL
    assert [query["page"] for query in site.asked("/issues")] == ["1", "2", "3", "4"]


def test_page_numbers_end_where_there_is_no_more(site: Site) -> None:
    def route(call: Call) -> Any:
        page = int(call.query["p"])
        return {"items": part(page * SIZE), "page": page, "last": 2}

    pagination = {"style": "page", "param": "p", "first": 0, "more": "page < last"}
    assert read(site, route, records="items", pagination=pagination) == ALL
    assert len(site.calls) == 3


def test_offsets_move_on_by_what_came(site: Site) -> None:
    def route(call: Call) -> Any:
        return part(int(call.query["offset"]))

    assert read(site, route, pagination={"style": "offset"}) == ALL
    assert [query["offset"] for query in site.asked("/issues")] == ["0", "2", "4", "5"]


def test_offsets_in_the_body_are_numbers(site: Site) -> None:
    def route(call: Call) -> Any:
        return part(call.body["offset"])

    post = {"method": "POST", "body": {"limit": 2}}
    assert read(site, route, pagination={"style": "offset", "place": "body"}, **post) == ALL
    assert site.calls[1].body == {"limit": 2, "offset": 2}


@pytest.mark.parametrize("place", ["params", "body"])
def test_cursors_go_where_they_belong(site: Site, place: str) -> None:
    def route(call: Call) -> Any:
        start = int((call.query if place == "params" else call.body).get("cursor", 0))
        after = start + SIZE
        return {"items": part(start), "meta": {"next": after, "more": after < len(RECORDS)}}

    method = {"method": "POST", "body": {"size": SIZE}} if place == "body" else {}
    pagination = {"style": "cursor", "next": "meta.next", "more": "meta.more", "place": place}
    assert read(site, route, records="items", pagination=pagination, **method) == ALL


def test_links_in_answers_are_followed_as_they_are(site: Site) -> None:
    def route(call: Call) -> Any:
        start = int(call.query.get("at", 0))
        link = f"/issues?at={start + SIZE}" if start + SIZE < len(RECORDS) else None
        return {"items": part(start), "next": link}

    more = {"records": "items", "params": {"size": 2}}
    assert read(site, route, pagination={"style": "next_link", "next": "next"}, **more) == ALL
    assert site.asked("/issues") == [{"size": "2"}, {"at": "2"}, {"at": "4"}]


@pytest.mark.parametrize("ending", ["", '; results="false"'])
def test_link_headers_end_by_absence_or_by_saying_so(site: Site, ending: str) -> None:
    def route(call: Call) -> Any:
        start = int(call.query.get("at", 0))
        is_last = start + SIZE >= len(RECORDS)
        link = f'<{site.url}/issues?at={start + SIZE}>; rel="next"'
        link = (link + ending if ending else "") if is_last else link
        return Reply(part(start), headers={"Link": link} if link else {})

    assert read(site, route, pagination={"style": "link_header"}) == ALL


def test_graphql_connections(site: Site) -> None:
    def route(call: Call) -> Any:
        start = int(call.body["variables"].get("after", 0))
        info = {"hasNextPage": start + SIZE < len(RECORDS), "endCursor": str(start + SIZE)}
        return {"data": {"issues": {"nodes": part(start), "pageInfo": info}}}

    found = read(
        site, route, graphql="query { issues }", records="data.issues.nodes",
        pagination={"style": "graphql", "connection": "data.issues"},
    )  # fmt: skip
    assert found == ALL
    assert [call.method for call in site.calls] == ["POST"] * 3


@pytest.mark.parametrize("repeats", ["cursor", "page"])
def test_circles_are_refused(site: Site, repeats: str) -> None:
    def route(call: Call) -> Any:
        number = int(call.query.get("cursor", 0))
        if repeats == "cursor":
            return {"items": [{"id": len(site.calls), "title": "x"}], "next": 1}
        return {"items": RECORDS, "next": number + 1}

    site.routes["/issues"] = route
    paging = {"style": "cursor", "next": "next"}
    data = manifest(stream("issue", records="items", pagination=paging), url=site.url)
    with pytest.raises(RejectedError, match="issue goes in circles"):
        pulled(opened(data))
    assert len(site.calls) <= 3


def test_pages_are_capped(site: Site) -> None:
    site.routes["/issues"] = lambda call: [{"id": call.query["page"], "title": "x"}]
    data = manifest(stream("issue", pagination={"style": "page", "max_pages": 3}), url=site.url)
    with pytest.raises(RejectedError, match="more than 3 pages"):
        pulled(opened(data))


def test_links_to_other_hosts_are_not_followed(site: Site) -> None:
    site.routes["/issues"] = {"items": RECORDS, "next": "http://127.0.0.2:9/issues"}
    paging = {"style": "next_link", "next": "next"}
    data = manifest(stream("issue", records="items", pagination=paging), url=site.url)
    with pytest.raises(RejectedError, match="another host"):
        pulled(opened(data))


def test_a_selector_that_finds_no_list_is_no_empty_listing(site: Site) -> None:
    site.routes["/issues"] = {"issues": RECORDS}
    data = manifest(stream("issue", records="items", complete=True), url=site.url)
    with pytest.raises(RejectedError, match="no list at 'items'"):
        pulled(opened(data))
