"""Discussions of GitHub, against the part of its GraphQL schema that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from graphql import build_schema, graphql_sync

from config.errors import CredentialsError, RateLimitedError
from connectors.base import Checkpoint, Complete, Deletion, Event, Failure, File, Notice, Record
from connectors.models import Connection
from connectors.native.github.api import GithubApi
from connectors.native.github.connector import GithubConnector
from tests.connectors.conftest import Syncs
from tests.connectors.manifest.site import Call, Reply, Site, ids, only, served
from tests.connectors.vendor import HOST, make_connector

pytestmark = pytest.mark.allow_hosts([HOST])

# https://docs.github.com/graphql/guides/using-the-graphql-api-for-discussions
SCHEMA = build_schema("""
type Query { repository(owner: String!, name: String!, followRenames: Boolean = true): Repository }
type Repository {
  discussion(number: Int!): Discussion
  discussions(after: String, first: Int, orderBy: DiscussionOrder): DiscussionConnection!
}
input DiscussionOrder { field: DiscussionOrderField!, direction: OrderDirection! }
enum DiscussionOrderField { CREATED_AT UPDATED_AT }
enum OrderDirection { ASC DESC }
type DiscussionConnection { nodes: [Discussion], pageInfo: PageInfo! }
type PageInfo { endCursor: String, hasNextPage: Boolean! }
interface Actor { login: String! }
type User implements Actor { login: String! }
type DiscussionCategory { name: String! }
type Discussion {
  number: Int!, title: String!, body: String!, url: URI!, createdAt: DateTime!, updatedAt: DateTime!
  isAnswered: Boolean, author: Actor, category: DiscussionCategory!
  comments(after: String, first: Int): DiscussionCommentConnection!
}
type DiscussionCommentConnection { nodes: [DiscussionComment], pageInfo: PageInfo! }
type DiscussionComment {
  body: String!, createdAt: DateTime!, isAnswer: Boolean!, author: Actor
  replies(after: String, first: Int): DiscussionCommentConnection!
}
scalar DateTime
scalar URI
""")
FIRST, SECOND, THIRD, FOURTH = (f"2025-01-0{day}T00:00:00Z" for day in range(1, 5))


class Forum:
    """Discussions by repository, in pages of two."""

    def __init__(self, site: Site) -> None:
        self.site, self.size = site, 2
        self.talks: dict[str, list[dict[str, Any]]] = {"acme/app": []}
        self.faults: dict[str, Any] = {}  # by repository: a `Reply`, or errors beside no data
        self.between: Callable[[], None] = lambda: None  # called after each page
        site.routes |= {"/graphql": self.answer, "/repos/acme/app/collaborators": []}
        self.repository("acme/app")

    def repository(self, name: str, **facts: Any) -> None:
        """Let there be one."""
        about = {"full_name": name, "private": True, "html_url": f"https://github.com/{name}"}
        self.site.routes[f"/repos/{name}"] = {**about, "has_discussions": True, **facts}

    def answer(self, call: Call) -> Any:
        variables = call.body["variables"]
        name = f"{variables['owner']}/{variables['name']}"
        if name in self.faults:
            fault = self.faults[name]
            return (
                fault
                if isinstance(fault, Reply)
                else {"data": {"repository": None}, "errors": fault}
            )
        root = {"repository": lambda _, **__: self._found(name)}
        done = graphql_sync(SCHEMA, call.body["query"], root, variable_values=variables)
        assert not done.errors, done.errors
        answer: dict[str, Any] = {"data": done.data}
        if (done.data or {})["repository"].get("discussion", "") is None:
            answer["errors"] = [
                {"type": "NOT_FOUND", "path": ["repository", "discussion"], "message": "No."}
            ]
        self.between()
        return answer

    def _found(self, name: str) -> Any:
        def discussions(_: Any, first: int, orderBy: Mapping[str, str], after: str | None) -> Any:  # noqa: N803
            assert first == 50
            down = orderBy["direction"] == "DESC"
            rows = sorted(self.talks[name], key=_place, reverse=down)
            if after:
                rows = [
                    one for one in rows if (_place(one) < after if down else _place(one) > after)
                ]
            page, more = rows[: self.size], len(rows) > self.size
            info = {"endCursor": _place(page[-1]) if page else None, "hasNextPage": more}
            return {"nodes": [*page, None], "pageInfo": info}

        def discussion(_: Any, number: int) -> Any:
            return next((one for one in self.talks[name] if one["number"] == number), None)

        return {"discussions": discussions, "discussion": discussion}

    def asked(self) -> list[Mapping[str, Any]]:
        """The variables of the queries so far."""
        return [call.body["variables"] for call in self.site.calls if call.path == "/graphql"]


def _place(one: Mapping[str, Any]) -> str:
    return f"{one['updatedAt']} {one['number']:04}"


def talk(number: int, updated: str = FIRST, **facts: Any) -> dict[str, Any]:
    """A discussion."""
    return {
        "number": number, "title": f"Talk {number}", "body": "How?", "createdAt": FIRST,
        "updatedAt": updated, "url": f"https://github.com/acme/app/discussions/{number}",
        "isAnswered": None, "author": {"__typename": "User", "login": "ana"},
        "category": {"name": "Q&A"}, "comments": paged([]), **facts,
    }  # fmt: skip


def said(body: str, *replies: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """A comment, or a reply to one. Its author has left."""
    return {
        "body": body, "createdAt": SECOND, "isAnswer": False, "author": None,
        "replies": paged(list(replies)), **facts,
    }  # fmt: skip


def paged(rows: list[Any]) -> Callable[..., Any]:
    """A connection that gives as many as are asked for."""

    def page(_: Any, first: int, after: str | None = None) -> Any:
        assert first <= 100
        end = int(after or 0) + first
        info = {"endCursor": str(end), "hasNextPage": end < len(rows)}
        return {"nodes": rows[int(after or 0) : end], "pageInfo": info}

    return page


@pytest.fixture
def forum(settings: Any, monkeypatch: Any) -> Iterator[Forum]:
    settings.GROUNDWORK_PRIVATE_HOSTS = [HOST]
    monkeypatch.setattr("connectors.services.opening.admission", lambda *_: lambda: None)
    site = Site()
    with served(site) as site.url:
        yield Forum(site)


ONLY = {"code": "none", "issues": False, "pull_requests": False, "releases": False}


def made(forum: Forum, *names: str, **config: Any) -> GithubConnector:
    """A connector that reads nothing but discussions."""
    known = {"repositories": names or ["acme/app"], "api_url": forum.site.url, **ONLY, **config}
    return make_connector(GithubConnector, known, {"token": "t"})


def end(events: list[Event]) -> Any:
    """The last position."""
    return only(events, Checkpoint)[-1].cursor


def content(record: Record) -> str:
    """What its file holds."""
    assert isinstance(record.body, File)
    with record.body.open() as file:
        return file.read().decode()


def ids_of(*numbers: int) -> list[str]:
    return [f"acme/app/discussions/{number}" for number in numbers]


def test_a_discussion_holds_its_comments_and_replies(forum: Forum) -> None:
    comments = [
        said(
            "在湖边。", said("谢谢！", author={"__typename": "User", "login": "bo"}), isAnswer=True
        )
    ]
    forum.talks["acme/app"] = [
        talk(
            7,
            THIRD,
            title="苍鹭在哪里？",
            body="找不到。",
            isAnswered=True,
            comments=paged(comments),
        )
    ]
    events = list(made(forum).pull({}))
    (record,) = only(events, Record)
    assert (record.external_id, record.title) == ("acme/app/discussions/7", "苍鹭在哪里？ (#7)")
    assert (record.scope, record.version, record.author) == ("acme/app:discussions", THIRD, "ana")
    assert record.breadcrumbs == ("acme/app", "Discussions", "Q&A")
    assert record.url == "https://github.com/acme/app/discussions/7"
    assert record.principals == frozenset({"group:acme/app"})
    assert record.metadata["answered"] is True
    assert content(record) == (
        "# 苍鹭在哪里？\n\n找不到。\n\n## ghost, 2025-01-02, the answer\n\n在湖边。"
        "\n\n### bo, 2025-01-02\n\n谢谢！"
    )
    assert only(events, Complete) == [Complete("acme/app:discussions")]
    assert len(forum.asked()) == 1, "comments come with the listing"
    assert forum.site.calls[-1].headers["authorization"] == "Bearer t"


def test_more_comments_and_replies_than_a_listing_holds_are_read(forum: Forum) -> None:
    many = [said(f"Comment {number}.") for number in range(60)]
    long = [said("Begin.", *(said(f"Reply {number}.") for number in range(30)))]
    forum.talks["acme/app"] = [talk(1, comments=paged(many)), talk(2, comments=paged(long))]
    first, second = map(content, only(list(made(forum).pull({})), Record))
    assert [first.count(f"Comment {number}.") for number in range(60)] == [1] * 60
    assert [second.count(f"Reply {number}.") for number in range(30)] == [1] * 30


def test_a_later_run_stops_at_the_position(forum: Forum) -> None:
    forum.talks["acme/app"] = [talk(number) for number in range(1, 6)] + [talk(6, SECOND)]
    connector = made(forum)
    events = list(connector.pull({}))
    assert ids(events) == ids_of(1, 2, 3, 4, 5, 6)
    cursor = end(events)
    forum.site.calls.clear()
    assert ids(list(connector.pull(cursor))) == ids_of(6)
    assert len(forum.asked()) == 1
    forum.talks["acme/app"] += [talk(7, SECOND), talk(8, THIRD)]
    forum.talks["acme/app"][0]["updatedAt"] = FOURTH
    events = list(connector.pull(cursor))
    assert ids(events) == ids_of(1, 8, 7, 6), "one of the same second is not lost"
    assert only(events, Complete) == [], "a part is no complete listing"
    assert end(events)["repositories"]["acme/app"]["discussions"] == FOURTH


def test_what_is_touched_during_the_first_listing_is_not_swept(forum: Forum) -> None:
    forum.talks["acme/app"] = [talk(number) for number in range(1, 6)]

    def touch() -> None:
        forum.talks["acme/app"][4]["updatedAt"] = FOURTH

    forum.between = touch
    events = list(made(forum).pull({}))
    assert ids(events) == ids_of(1, 2, 3, 4, 5)
    assert only(events, Complete)


@pytest.mark.parametrize("begun", ["", FIRST])
def test_a_run_that_breaks_off_loses_nothing(forum: Forum, begun: str) -> None:
    days = [f"2025-02-{day:02}T00:00:00Z" for day in range(1, 8)]
    forum.talks["acme/app"] = [talk(number, day) for number, day in enumerate(days, start=1)]
    connector = made(forum)
    cursor = {"repositories": {"acme/app": {"readers": "group:acme/app", "discussions": begun}}}
    seen, last = set[str](), None
    for event in connector.pull(cursor):
        seen |= {event.external_id} if isinstance(event, Record) else set()
        if isinstance(event, Checkpoint):
            last = event.cursor
            break
    assert len(seen) == 2
    assert last is not None
    seen |= set(ids(list(connector.pull(last))))
    assert seen == set(ids_of(*range(1, 8)))


def test_a_repository_without_discussions_gives_none(forum: Forum) -> None:
    forum.repository("acme/app", has_discussions=False)
    events = list(made(forum).pull({}))
    assert (ids(events), only(events, Notice)) == ([], [])
    assert only(events, Complete) == [Complete("acme/app:discussions")]
    forum.repository("acme/app")
    assert ids(list(made(forum, discussions=False).pull({}))) == []
    assert forum.asked() == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ([{"type": "FORBIDDEN", "message": "Resource not accessible"}], "Resource not accessible"),
        ([{"type": "NOT_FOUND", "message": "Could not resolve"}], "Could not resolve"),
        ([], "does not show this repository"),
        (Reply({}, 502), "has a problem of its own (502)"),
        (Reply({}, 403), "does not allow this (403)"),
    ],
)
def test_what_one_repository_refuses_loses_no_other(forum: Forum, fault: Any, reason: str) -> None:
    forum.repository("acme/lib")
    forum.talks["acme/lib"] = [talk(1)]
    position = {"readers": "group:acme/app", "discussions": SECOND}
    forum.faults["acme/app"] = fault
    connector = made(forum, "acme/app", "acme/lib")
    events = list(connector.pull({"repositories": {"acme/app": position}}))
    (notice,) = only(events, Notice)
    assert notice.message.startswith("acme/app could not be read completely. The discussions: ")
    assert reason in notice.message
    assert ids(events) == ["acme/lib/discussions/1"]
    assert only(events, Complete) == [Complete("acme/lib:discussions")]
    assert end(events)["repositories"]["acme/app"] == position


def test_limits_and_credentials_end_the_run(forum: Forum) -> None:
    forum.faults["acme/app"] = [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]
    with pytest.raises(RateLimitedError):
        list(made(forum).pull({}))
    forum.faults["acme/app"] = Reply({}, 401)
    with pytest.raises(CredentialsError):
        list(made(forum).pull({}))


def test_single_discussions_are_read_anew(forum: Forum) -> None:
    forum.talks["acme/app"] = [talk(1, comments=paged([said("Here.")]))]
    events = list(made(forum).fetch([*ids_of(1, 9), "acme/gone/discussions/1"]))
    assert [type(one) for one in events] == [Record, Deletion, Failure]
    assert isinstance(events[0], Record)
    assert "Here." in content(events[0])


@pytest.mark.parametrize(
    ("address", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://git.acme.example/api/v3/", "https://git.acme.example/api/graphql"),
        ("https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"),
    ],
)
def test_graphql_has_an_address_of_its_own(address: str, graphql: str) -> None:
    asked: list[str] = []

    class Client:
        def request(self, _method: str, url: str, **_: Any) -> Any:
            asked.append(url)
            raise CredentialsError("no")

    api: Any = GithubApi
    with pytest.raises(CredentialsError):
        api(Client(), address).graphql("", {})
    assert asked == [graphql]


def test_a_run_stores_and_updates(
    forum: Forum, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    forum.talks["acme/app"] = [talk(1, body="苍鹭涉水。"), talk(2), talk(3, SECOND)]
    connection = connect(
        "github",
        config={"repositories": ["acme/app"], "api_url": forum.site.url, **ONLY},
        auth_method="token",
        credentials={"token": "t"},
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 3, "")
    forum.talks["acme/app"][0] |= {"updatedAt": THIRD, "comments": paged([said("飞走了。")])}
    run = syncs.run(connection)
    assert (run.status, run.updated, run.kept, run.deleted) == ("succeeded", 1, 1, 0)
    del forum.talks["acme/app"][1]
    assert syncs.run(connection, kind=run.Kind.FULL).deleted == 1
    assert set(syncs.documents()) == set(ids_of(1, 3))
