"""Rounds over streams: changes only, what is gone, failures, and going on where one ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from config.errors import CredentialsError, RejectedError, TransientError
from connectors.base import (
    Checkpoint,
    Complete,
    Connector,
    Deletion,
    Event,
    Failure,
    Notice,
    Record,
)
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
PAGED = {"records": "items", "pagination": {"style": "cursor", "next": "next"}}


def issue(name: Any, updated: str = "2025-03-01T10:00:00Z", **more: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Title {name}", "body": "鹭", "updated": updated, **more}


def listing(
    records: Callable[[], list[dict[str, Any]]], size: int = 2, param: str = "since"
) -> Callable[[Call], Any]:
    """Pages of the records at or after a moment."""

    def route(call: Call) -> Any:
        wanted = [one for one in records() if one["updated"] >= call.query.get(param, "")]
        start = int(call.query.get("cursor", 0))
        after = start + size
        return {
            "items": wanted[start:after],
            "next": str(after) if after < len(wanted) else None,
        }

    return route


def last_cursor(events: Any) -> dict[str, Any]:
    return dict(only(events, Checkpoint)[-1].cursor)


def before(error: type[Exception], connector: Connector[Any]) -> list[Event]:
    """What a pull yields before an error ends it."""
    events: list[Event] = []

    def take() -> None:
        events.extend(connector.pull({}))

    with pytest.raises(error):
        take()
    return events


def test_later_syncs_ask_for_changes_and_lose_no_equal_times(site: Site) -> None:
    records = [issue(1, "2025-03-01T09:00:00Z"), issue(2), issue(3)]
    site.routes["/issues"] = listing(lambda: records)
    incremental = {"field": "updated", "param": "since", "overlap_seconds": 5}
    data = manifest(stream("issue", incremental=incremental, complete=True, **PAGED), url=site.url)
    connector = opened(data)
    first = pulled(connector)
    assert ids(first) == ["issue:1", "issue:2", "issue:3"]
    assert only(first, Complete) == [Complete("issue")]
    # One more with the very same time was not there yet when the first sync passed.
    records.append(issue(4))
    second = pulled(connector, last_cursor(first))
    assert ids(second) == ["issue:2", "issue:3", "issue:4"]
    assert site.asked("/issues")[-1]["since"] == "2025-03-01T09:59:55Z"
    assert only(second, Complete) == [], "changes are not everything"
    assert last_cursor(second) == last_cursor(first)


def test_the_watermark_is_no_later_than_the_beginning(site: Site) -> None:
    site.routes["/issues"] = listing(lambda: [issue(1, "2025-03-01T12:00:30Z")])
    incremental = {"field": "updated", "param": "since"}
    connector = opened(manifest(stream("issue", incremental=incremental, **PAGED), url=site.url))
    with time_machine.travel(datetime(2025, 3, 1, 12, tzinfo=UTC), tick=False):
        events = pulled(connector)
    assert last_cursor(events) == {"since": {"issue": "2025-03-01T12:00:00+00:00"}}


@pytest.mark.parametrize(("form", "sent"), [("unix", "1740823140"), ("date", "2025-03-01")])
def test_moments_are_sent_as_the_source_wants_them(site: Site, form: str, sent: str) -> None:
    site.routes["/issues"] = {"items": [issue(1)], "next": None}
    incremental = {"field": "updated", "format": form}
    params = {"after": "{{ since }}"}
    connector = opened(
        manifest(stream("issue", incremental=incremental, params=params, **PAGED), url=site.url)
    )
    pulled(connector, last_cursor(pulled(connector)))
    assert site.asked("/issues") == [{}, {"after": sent}]


def test_a_listing_from_new_to_old_ends_at_what_is_known(site: Site) -> None:
    records = [issue(n, f"2025-03-01T{10 + n}:00:00Z") for n in reversed(range(8))]
    records.insert(0, issue("pinned", "2020-01-01T00:00:00Z"))
    site.routes["/issues"] = listing(lambda: records)
    incremental = {"field": "updated", "newest_first": True}
    connector = opened(manifest(stream("issue", incremental=incremental, **PAGED), url=site.url))
    first = pulled(connector)
    assert len(ids(first)) == 9
    records.insert(1, issue("new", "2025-03-01T18:00:00Z"))
    site.calls.clear()
    second = pulled(connector, last_cursor(first))
    assert ids(second) == ["issue:pinned", "issue:new", "issue:7", "issue:6"]
    assert len(site.calls) == 2


def test_a_run_goes_on_at_the_page_where_it_ended(site: Site) -> None:
    records = [issue(n) for n in range(6)]
    whole = listing(lambda: records)
    site.routes["/issues"] = lambda call: (
        Reply({}, 401) if call.query.get("cursor") == "4" else whole(call)
    )
    incremental = {"field": "updated", "param": "since"}
    streams = [
        stream("issue", incremental=incremental, complete=True, **PAGED),
        stream("page", complete=True),
    ]
    connector = opened(manifest(*streams, url=site.url))
    cursor = last_cursor(before(CredentialsError, connector))
    assert (cursor["at"]["unit"], cursor["at"]["position"]) == ("issue", {"cursor": "4"})
    assert "since" not in cursor, "known only when the listing has ended"
    site.routes["/issues"], site.routes["/pages"] = whole, [issue("p")]
    site.calls.clear()
    rest = pulled(connector, cursor)
    assert ids(rest) == ["issue:4", "issue:5", "page:p"]
    assert site.asked("/issues") == [{"cursor": "4"}]
    assert only(rest, Complete) == [Complete("issue"), Complete("page")]
    assert last_cursor(rest) == {"since": {"issue": "2025-03-01T10:00:00+00:00"}}


def test_what_was_missed_before_a_cut_is_not_forgotten(site: Site) -> None:
    whole = listing(lambda: [issue(n) for n in range(4)])
    site.routes["/issues"] = whole
    site.routes |= {f"/issues/{n}/notes": [] for n in range(1, 4)}
    site.routes["/issues/0/notes"] = Reply({}, 403)
    streams = [
        stream("issue", complete=True, **PAGED),
        stream("note", complete=True, parent="issue", path="/issues/{{ parent.id }}/notes"),
    ]
    connector = opened(manifest(*streams, url=site.url))
    cut = only(pulled(connector), Checkpoint)[0].cursor
    assert cut["partial"] == ["note"]
    site.routes["/issues/0/notes"] = []
    rest = pulled(connector, cut)
    assert only(rest, Complete) == [Complete("issue")], "the first issue's notes were not seen"
    assert last_cursor(rest) == {}


def test_streams_that_have_ended_are_not_listed_again(site: Site) -> None:
    site.routes["/issues"], site.routes["/pages"] = [issue(1)], [issue(2)]
    streams = [stream("issue", complete=True), stream("page", complete=True)]
    connector = opened(manifest(*streams, url=site.url))
    rest = pulled(connector, {"done": ["issue"]})
    assert ids(rest) == ["page:2"]
    assert only(rest, Complete) == [Complete("page")]
    assert last_cursor(rest) == {}


def test_a_position_that_the_source_forgot_is_given_up(site: Site) -> None:
    records = [issue(n) for n in range(3)]
    whole = listing(lambda: records)
    site.routes["/issues"] = lambda call: (
        Reply({}, 410) if call.query.get("cursor") == "old" else whole(call)
    )
    connector = opened(manifest(stream("issue", complete=True, **PAGED), url=site.url))
    at = {"unit": "issue", "position": {"cursor": "old"}, "pages": 7}
    events = pulled(connector, {"at": at})
    assert ids(events) == ["issue:0", "issue:1", "issue:2"]
    assert only(events, Complete) == [Complete("issue")]


def test_a_page_that_fails_in_the_middle_leaves_the_rest_alone(site: Site) -> None:
    whole = listing(lambda: [issue(n) for n in range(5)])
    site.routes["/issues"] = lambda call: (
        Reply({}, 403) if call.query.get("cursor") == "2" else whole(call)
    )
    site.routes["/pages"] = [issue("p")]
    incremental = {"field": "updated", "param": "since"}
    streams = [
        stream("issue", incremental=incremental, complete=True, **PAGED),
        stream("page", complete=True),
    ]
    events = pulled(opened(manifest(*streams, url=site.url)))
    assert ids(events) == ["issue:0", "issue:1", "page:p"]
    assert "issue could not be read" in only(events, Notice)[0].message
    assert only(events, Complete) == [Complete("page")]
    assert last_cursor(events) == {}, "the next sync lists everything"


def test_when_every_listing_fails_the_run_does(site: Site) -> None:
    site.routes["/issues"] = site.routes["/pages"] = Reply({}, 403)
    with pytest.raises(RejectedError):
        pulled(opened(manifest(stream("issue"), stream("page"), url=site.url)))


def test_a_source_that_is_down_ends_the_run(site: Site) -> None:
    site.routes["/issues"] = Reply({}, 503)
    site.routes["/pages"] = []
    with pytest.raises(TransientError):
        pulled(opened(manifest(stream("page"), stream("issue"), url=site.url)))


def test_what_is_marked_as_gone_is_deleted(site: Site) -> None:
    site.routes["/issues"] = [issue(1), issue(2, archived=True), issue(3, archived=False)]
    events = pulled(opened(manifest(stream("issue", gone_when="archived"), url=site.url)))
    assert ids(events) == ["issue:1", "issue:3"]
    assert only(events, Deletion) == [Deletion("issue:2")]
    assert only(events, Complete) == []


def test_ids_of_two_streams_never_collide(site: Site) -> None:
    site.routes["/issues"] = site.routes["/pages"] = [issue(1)]
    events = pulled(opened(manifest(stream("issue"), stream("page"), url=site.url)))
    assert ids(events) == ["issue:1", "page:1"]
    assert [record.scope for record in only(events, Record)] == ["issue", "page"]


def test_a_bad_record_is_a_failure_and_one_without_an_id_a_warning(site: Site) -> None:
    site.routes["/issues"] = [issue(1, n=0), issue(2, n=4), issue(None, n=1)]
    mapping = {"title": "{{ 8 // record.n }}"}
    events = pulled(opened(manifest(stream("issue", complete=True, mapping=mapping), url=site.url)))
    assert ids(events) == ["issue:2"]
    failure = only(events, Failure)[0]
    assert (failure.external_id, failure.scope) == ("issue:1", "issue")
    assert "no id" in only(events, Notice)[0].message
    assert only(events, Complete) == [], "what has no id may be any of those that were there"


def test_one_listing_for_each_value_of_the_configuration(site: Site) -> None:
    site.routes["/top"], site.routes["/new"] = [issue(1)], Reply({}, 403)
    data = manifest(
        stream("item", path="/{{ each }}", each="feeds", complete=True),
        config=[{"name": "feeds", "title": "Feeds", "type": "list", "required": True}],
        url=site.url,
    )
    events = pulled(opened(data, {"feeds": ["top", "new"]}))
    assert ids(events) == ["item:1"]
    assert "item/new could not be read" in only(events, Notice)[0].message
    assert only(events, Complete) == []
    site.routes["/new"] = [issue(2)]
    assert only(pulled(opened(data, {"feeds": ["top", "new"]})), Complete) == [Complete("item")]


def test_a_limit_ends_the_listing(site: Site) -> None:
    site.routes["/issues"] = listing(lambda: [issue(n) for n in range(9)])
    events = pulled(opened(manifest(stream("issue", limit=3, **PAGED), url=site.url)))
    assert ids(events) == ["issue:0", "issue:1", "issue:2"]
    assert len(site.calls) == 2
    connector = opened(manifest(stream("issue", limit=3, **PAGED), url=site.url))
    rest = pulled(connector, only(events, Checkpoint)[0].cursor)
    assert ids(rest) == ["issue:2"], "what came before counts"
