"""What hangs on records: details, attached listings, streams below them."""

from __future__ import annotations

from typing import Any

import pytest

from config.errors import TransientError
from connectors.base import Complete, Failure, Notice, Record, Text
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
COMMENTS = {"name": "comments", "path": "/issues/{{ record.id }}/comments", "when": "count"}
BODY = "{{ record.body }}{% for one in attached.comments %}\n\n\n> {{ one.text }}{% endfor %}"


def issue(name: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Title {name}", "body": "鹭", **more}


def body(event: Any) -> str:
    assert isinstance(event, Record)
    assert isinstance(event.body, Text)
    return event.body.text


def space_and_pages(site: Site, **more: Any) -> Any:
    child = stream(
        "page", path="/spaces/{{ parent.id }}/pages", parent="space", complete=True,
        mapping={"breadcrumbs": ["{{ parent.title }}"]}, **more,
    )  # fmt: skip
    return manifest(stream("space", complete=True), child, url=site.url)


def test_children_know_their_parent(site: Site) -> None:
    site.routes["/spaces"] = [issue("a/b"), issue("c")]
    site.routes["/spaces/a%2Fb/pages"] = [issue(1), issue(2)]
    site.routes["/spaces/c/pages"] = []
    events = pulled(opened(space_and_pages(site)))
    assert ids(events) == ["space:a/b", "page:1", "page:2", "space:c"]
    assert only(events, Record)[1].breadcrumbs == ("Title a/b",)
    assert only(events, Complete) == [Complete("space"), Complete("page")]


def test_children_of_children_have_pages_too(site: Site) -> None:
    below = stream(
        "note", path="/pages/{{ parent.id }}/notes", parent="page", pagination={"style": "page"},
        mapping={"breadcrumbs": ["{{ ancestors[1].title }}", "{{ ancestors[0].title }}"]},
    )  # fmt: skip
    data = space_and_pages(site)
    data["streams"].append(below)
    del data["streams"][0]["mapping"]
    site.routes["/spaces"], site.routes["/spaces/s/pages"] = [issue("s")], [issue(1)]
    site.routes["/pages/1/notes"] = lambda call: (
        [issue(f"n{call.query['page']}")] if int(call.query["page"]) < 3 else []
    )
    events = pulled(opened(data))
    assert ids(events) == ["page:1", "note:n1", "note:n2"]
    assert only(events, Record)[1].breadcrumbs == ("Title s", "Title 1")


def test_a_child_listing_that_fails_counts_against_its_parent(site: Site) -> None:
    site.routes["/spaces"] = [issue("a"), issue("b")]
    site.routes["/spaces/a/pages"], site.routes["/spaces/b/pages"] = Reply({}, 403), [issue(1)]
    events = pulled(opened(space_and_pages(site)))
    assert ids(events)[-1] == "page:1"
    assert [one.external_id for one in only(events, Failure)] == ["space:a"]
    assert only(events, Complete) == [Complete("space")], "of the pages not all were seen"


def test_a_parent_that_is_no_document_is_told_of(site: Site) -> None:
    data = space_and_pages(site)
    del data["streams"][0]["mapping"]
    site.routes["/spaces"], site.routes["/spaces/a/pages"] = [issue("a")], Reply({}, 403)
    events = pulled(opened(data))
    assert "space:" in only(events, Notice)[0].message
    assert only(events, Complete) == []


def test_some_statuses_mean_that_there_is_nothing(site: Site) -> None:
    site.routes["/spaces"], site.routes["/spaces/a/pages"] = [issue("a")], Reply({}, 404)
    events = pulled(opened(space_and_pages(site, empty_on=[404])))
    assert only(events, Failure) == []
    assert only(events, Complete) == [Complete("space"), Complete("page")]


def test_comments_are_part_of_the_body(site: Site) -> None:
    site.routes["/issues"] = [issue(1, count=2), issue(2, count=0)]
    site.routes["/issues/1/comments"] = [{"text": "Erste {{ 7*7 }}"}, {"text": "第二"}]
    data = manifest(stream("issue", attach=[COMMENTS], mapping={"body": BODY}), url=site.url)
    events = pulled(opened(data))
    assert body(events[0]) == "鹭\n\n> Erste {{ 7*7 }}\n\n> 第二"
    assert body(events[1]) == "鹭"
    assert len(site.calls) == 2, "the second has none, and is not asked"


def test_comments_that_fail_keep_the_record_as_it_was(site: Site) -> None:
    site.routes["/issues"] = [issue(1, count=2), issue(2, count=0, updated="2025-01-01")]
    site.routes["/issues/1/comments"] = Reply({}, 500)
    incremental = {"field": "updated", "param": "since"}
    data = manifest(
        stream("issue", attach=[COMMENTS], mapping={"body": BODY}, incremental=incremental),
        url=site.url,
    )
    events = pulled(opened(data))
    assert ids(events) == ["issue:2"]
    assert [one.external_id for one in only(events, Failure)] == ["issue:1"]
    assert events[-1].cursor == {}, "it is read again"  # type: ignore[union-attr]


def test_a_source_that_fails_again_and_again_ends_the_run(site: Site) -> None:
    site.routes["/issues"] = [issue(n, count=2) for n in range(20)]

    def fails(_call: Call) -> Reply:
        return Reply({}, 500)

    site.routes |= {f"/issues/{n}/comments": fails for n in range(20)}
    data = manifest(stream("issue", attach=[COMMENTS], mapping={"body": BODY}), url=site.url)
    with pytest.raises(TransientError):
        pulled(opened(data))


def test_listed_records_may_be_names_of_the_real_ones(site: Site) -> None:
    site.routes["/items"] = [1, 2, 3]
    site.routes["/items/1"], site.routes["/items/2"] = issue(1), None
    site.routes["/items/3"] = Reply({}, 403)
    one = stream(
        "item", item={"path": "/items/{{ listed }}"}, mapping={"external_id": "{{ listed }}"}
    )
    events = pulled(opened(manifest(one, url=site.url)))
    assert ids(events) == ["item:1"]
    assert [failure.external_id for failure in only(events, Failure)] == ["item:3"]


def test_templates_see_the_answer_around_a_record(site: Site) -> None:
    site.routes["/issues"] = {"items": [issue(1, by=7)], "users": [{"id": 7, "name": "Ana"}]}
    author = '{{ (answer.users | selectattr("id", "equalto", record.by) | first).name }}'
    data = manifest(stream("issue", records="items", mapping={"author": author}), url=site.url)
    assert only(pulled(opened(data)), Record)[0].author == "Ana"
