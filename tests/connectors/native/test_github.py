"""GitHub's own API description: repositories with files, issues, pull requests and releases."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from config.errors import CredentialsError, ForbiddenError, InvalidInputError, RateLimitedError
from connectors.base import (
    Checkpoint,
    Complete,
    Cursor,
    Deletion,
    Event,
    Failure,
    File,
    Membership,
    Notice,
    Record,
)
from connectors.models import Connection
from connectors.native.github.connector import GithubConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Hub:
    """Repositories on a running description."""

    def __init__(self, server: Vendor) -> None:
        self.server = server
        self.private = True
        self.head = "c1"
        self.truncated: set[str] = set()
        self.trees: dict[str, dict[str, str]] = {"t1": {"README.md": "b1", "src/苍鹭.py": "b2"}}
        self.issues: list[dict[str, Any]] = []
        self.comments: dict[str, list[str]] = {}
        self.releases: list[dict[str, Any]] = []
        server.on("GET /user", lambda _, answer: {**answer, "login": "ana"})
        server.on("GET /repos/{owner}/{repo}", self._repository)
        server.on("GET /orgs/{org}/repos", self._organisation)
        server.on("GET /repos/{owner}/{repo}/commits", self._commits)
        server.on("GET /repos/{owner}/{repo}/git/trees/{tree_sha}", self._tree)
        server.on("GET /repos/{owner}/{repo}/issues", self._issues)
        server.on("GET /repos/{owner}/{repo}/issues/{issue_number}", self._issue)
        server.on("GET /repos/{owner}/{repo}/issues/{issue_number}/comments", self._comments)
        server.on("GET /repos/{owner}/{repo}/pulls/{pull_number}/comments", self._reviews)
        server.on("GET /repos/{owner}/{repo}/releases", lambda _, answer: [
            {**answer[0], **one} for one in self.releases
        ])  # fmt: skip
        server.files["/repos/acme/app/collaborators"] = b"[]"
        self.write("README.md", b"# App")
        self.write("src/苍鹭.py", "print('苍鹭')".encode())
        self.organisation = ["app", "lib"]

    def write(self, path: str, content: bytes, repository: str = "app") -> None:
        """Let a file have a content."""
        raw = path.encode().decode("latin-1")  # as WSGI has it
        self.server.files[f"/repos/acme/{repository}/contents/{raw}"] = content

    def _repository(self, asked: Asked, answer: Any) -> Any:
        if asked.path["repo"] == "gone":
            raise Refusal(404)
        return self._facts(answer, asked.path["repo"])

    def _facts(self, answer: Any, name: str) -> Any:
        return {
            **answer, "full_name": f"acme/{name}", "private": self.private, "default_branch": "main",
            "has_discussions": False,
            "html_url": f"https://github.com/acme/{name}",
        }  # fmt: skip

    def _organisation(self, _asked: Asked, answer: Any) -> Any:
        return [self._facts(answer[0], name) for name in self.organisation]

    def _commits(self, asked: Asked, answer: Any) -> Any:
        assert asked.query["sha"] == "main"
        commit = {**answer[0]["commit"], "tree": {**answer[0]["commit"]["tree"], "sha": "t1"}}
        return [{**answer[0], "sha": self.head, "commit": commit}]

    def _tree(self, asked: Asked, answer: Any) -> Any:
        sha = asked.path["tree_sha"]
        recursive = "recursive" in asked.query
        blobs = [
            {**answer["tree"][0], "path": path, "sha": blob, "mode": "100644", "type": "blob", "size": 9}
            for path, blob in self.trees[sha].items()
            if blob.startswith("b")
        ]  # fmt: skip
        folders = [
            {**answer["tree"][1], "path": path, "sha": tree, "mode": "040000", "type": "tree"}
            for path, tree in self.trees[sha].items()
            if tree.startswith("t")
        ]
        truncated = sha in self.truncated and recursive
        return {**answer, "sha": sha, "tree": blobs + folders, "truncated": truncated}

    def _issues(self, asked: Asked, answer: Any) -> Any:
        since, page = asked.query.get("since", ""), int(asked.query["page"])
        assert asked.query["state"] == "all"
        found = sorted(self.issues, key=lambda one: str(one["updated_at"]))
        found = [one for one in found if one["updated_at"] >= since]
        return [_issue(answer[0], one) for one in found[(page - 1) * 100 : page * 100]]

    def _issue(self, asked: Asked, answer: Any) -> Any:
        for one in self.issues:
            if str(one["number"]) == asked.path["issue_number"]:
                return _issue(answer, one)
        raise Refusal(404)

    def _comments(self, asked: Asked, answer: Any) -> Any:
        return [
            {**answer[0], "body": body}
            for body in self.comments.get(asked.path["issue_number"], [])
        ]

    def _reviews(self, asked: Asked, answer: Any) -> Any:
        assert asked.path["pull_number"] == "2"
        return [{**answer[0], "body": "请改名", "path": "src/苍鹭.py"}]


def _issue(example: Any, facts: dict[str, Any]) -> Any:
    own = dict(facts)
    answer = {key: value for key, value in example.items() if key != "pull_request"}
    if own.pop("pull", False):
        answer["pull_request"] = {
            "merged_at": "2025-01-03T00:00:00Z", "url": "https://x.example", "html_url": "https://x.example",
            "diff_url": "https://x.example", "patch_url": "https://x.example",
        }  # fmt: skip
    number = own["number"]
    return {
        **answer,
        "html_url": f"https://github.com/acme/app/issues/{number}",
        "comments": 0,
    } | own


def issue(number: int, updated: str = "2025-01-01T00:00:00Z", **facts: Any) -> dict[str, Any]:
    """An issue."""
    return {
        "number": number,
        "id": number,
        "title": f"Issue {number}",
        "updated_at": updated,
        **facts,
    }


@pytest.fixture
def hub(vendor: StartVendor) -> Hub:
    return Hub(vendor("github"))


def made(hub: Hub, **config: Any) -> GithubConnector:
    """A connector to it."""
    config = {"repositories": ["acme/app"], "api_url": hub.server.url, **config}
    return make_connector(GithubConnector, config, {"token": "t", "webhook_secret": "s3"})


def pull(connector: GithubConnector, cursor: Cursor | None = None) -> list[Event]:
    """Everything of a run."""
    return list(connector.pull(cursor or {}))


def records(events: list[Event]) -> dict[str, Record]:
    """Records by id."""
    return {one.external_id: one for one in events if isinstance(one, Record)}


def end(events: list[Event]) -> Cursor:
    """The last position."""
    last = events[-1]
    assert isinstance(last, Checkpoint)
    return last.cursor


def content(record: Record) -> str:
    """What its file holds."""
    assert isinstance(record.body, File)
    with record.body.open() as file:
        return file.read().decode()


def test_everything_of_a_repository_is_read(hub: Hub) -> None:
    hub.issues = [
        issue(1, title="苍鹭不见了", body="在哪里？", comments=1),
        issue(2, "2025-01-02T00:00:00Z", pull=True),
    ]
    hub.comments["1"] = ["在湖边。"]
    hub.releases = [{"id": 5, "name": "Heron", "body": "New wings.", "draft": False}]
    events = pull(made(hub))
    found = records(events)
    assert set(found) == {
        "acme/app/blob/README.md", "acme/app/blob/src/苍鹭.py", "acme/app/issues/1", "acme/app/issues/2",
        "acme/app/releases/5",
    }  # fmt: skip
    code = found["acme/app/blob/src/苍鹭.py"]
    assert content(code) == "print('苍鹭')"
    assert (code.version, code.breadcrumbs) == ("b2", ("acme/app", "src"))
    assert code.principals == frozenset({"group:acme/app"})
    about = found["acme/app/issues/1"]
    assert about.title == "苍鹭不见了 (#1)"
    assert "在哪里？" in content(about)
    assert "在湖边。" in content(about)
    request = found["acme/app/issues/2"]
    assert (request.metadata["type"], request.metadata["state"]) == ("pull_request", "merged")
    assert "请改名" in content(request)
    completed = {one.scope for one in events if isinstance(one, Complete)}
    assert completed == {
        f"acme/app:{stream}" for stream in ("code", "issues", "discussions", "releases")
    }


def test_a_later_run_asks_for_changes_only(hub: Hub) -> None:
    hub.issues = [issue(1), issue(2, "2025-01-02T00:00:00Z", pull=True)]
    connector = made(hub)
    cursor = end(pull(connector))
    hub.server.forget()
    hub.issues.append(issue(3, "2025-02-01T00:00:00Z"))
    events = pull(connector, cursor)
    assert set(records(events)) == {"acme/app/issues/2", "acme/app/issues/3"}
    assert Complete("acme/app:issues") not in events, "a part is no complete listing"
    assert hub.server.asked("GET /repos/{owner}/{repo}/git/trees/{tree_sha}") == []
    assert (
        hub.server.asked("GET /repos/{owner}/{repo}/issues")[0]["since"] == "2025-01-02T00:00:00Z"
    )


def test_a_new_commit_is_listed_whole_so_that_deletions_show(hub: Hub) -> None:
    connector = made(hub)
    cursor = end(pull(connector))
    hub.head, hub.trees = "c2", {"t1": {"README.md": "b9"}}
    events = pull(connector, cursor)
    assert {name: one.version for name, one in records(events).items()} == {
        "acme/app/blob/README.md": "b9"
    }
    assert Complete("acme/app:code") in events


def test_a_run_goes_on_where_it_was_broken_off(hub: Hub) -> None:
    hub.issues = [issue(n, f"2025-01-01T00:{n // 60:02}:{n % 60:02}Z") for n in range(1, 251)]
    connector = made(hub, code="none")
    events: Iterator[Event] = connector.pull({})
    first = next(one for one in events if isinstance(one, Checkpoint))
    rest = records(pull(connector, first.cursor))
    assert {f"acme/app/issues/{n}" for n in range(101, 251)} <= set(rest)
    assert len(rest) == 151
    assert len(records(pull(connector))) == 250


def test_many_issues_of_the_same_second_end(hub: Hub) -> None:
    hub.issues = [issue(number) for number in range(1, 251)]
    assert len(records(pull(made(hub, code="none")))) == 250


def test_one_repository_that_is_gone_does_not_lose_the_others(hub: Hub) -> None:
    events = pull(made(hub, repositories=["acme/gone", "acme/app"]))
    assert [one.message for one in events if isinstance(one, Notice)] == [
        "acme/gone was left out. 127.0.0.1 does not have this (404)."
    ]
    assert "acme/app/blob/README.md" in records(events)
    assert not [one for one in events if isinstance(one, Complete) and "gone" in one.scope]


def test_a_repository_that_fails_midway_is_reported_and_not_swept(hub: Hub) -> None:
    def refuse(_asked: Asked, _answer: Any) -> None:
        raise Refusal(403)

    hub.server.on("GET /repos/{owner}/{repo}/issues", refuse)
    events = pull(made(hub))
    assert any(isinstance(one, Notice) and "acme/app" in one.message for one in events)
    assert Complete("acme/app:issues") not in events
    assert Complete("acme/app:code") in events


def test_repositories_that_leave_an_organisation_are_swept(hub: Hub) -> None:
    connector = made(hub, repositories=[], organisation="acme")
    events = pull(connector)
    assert {name.split("/blob/")[0] for name in records(events)} == {"acme/app", "acme/lib"}
    hub.organisation = ["app"]
    events = pull(connector, end(events))
    assert Complete("acme/lib:code") in events
    assert Complete("acme/lib:issues") in events


def test_an_empty_repository_has_no_files(hub: Hub) -> None:
    def empty(_asked: Asked, _answer: Any) -> None:
        raise Refusal(409)

    hub.server.on("GET /repos/{owner}/{repo}/commits", empty)
    events = pull(made(hub))
    assert records(events) == {}
    assert Complete("acme/app:code") in events


def test_a_branch_that_is_not_there_sweeps_nothing(hub: Hub) -> None:
    def missing(_asked: Asked, _answer: Any) -> None:
        raise Refusal(404)

    hub.server.on("GET /repos/{owner}/{repo}/commits", missing)
    events = pull(made(hub))
    assert any(isinstance(one, Notice) for one in events)
    assert Complete("acme/app:code") not in events


def test_a_tree_too_large_for_one_answer_is_read_by_folders(hub: Hub) -> None:
    hub.trees = {"t1": {"src": "t2", "a.md": "b1"}, "t2": {"b.py": "b2"}}
    hub.truncated = {"t1"}
    events = pull(made(hub))
    assert set(records(events)) == {"acme/app/blob/a.md", "acme/app/blob/src/b.py"}
    assert Complete("acme/app:code") in events


def test_files_are_chosen_by_name_and_size(hub: Hub) -> None:
    hub.trees = {"t1": {"a.md": "b1", "b.exe": "b2", "node_modules/c.js": "b3", "d.py": "b4"}}
    assert set(records(pull(made(hub)))) == {"acme/app/blob/a.md", "acme/app/blob/d.py"}
    assert set(records(pull(made(hub, include=["*.py"])))) == {"acme/app/blob/d.py"}


def test_the_readme_alone_may_be_read(hub: Hub) -> None:
    events = pull(made(hub, code="readme", issues=False, pull_requests=False, releases=False))
    assert set(records(events)) == {"acme/app/blob/README.md"}
    assert not hub.server.asked("GET /repos/{owner}/{repo}/issues")
    assert records(pull(made(hub, code="none", issues=False, pull_requests=False))) == {}


def test_issues_without_pull_requests_and_the_other_way_round(hub: Hub) -> None:
    hub.issues = [issue(1), issue(2, pull=True)]
    assert set(records(pull(made(hub, code="none", pull_requests=False)))) == {"acme/app/issues/1"}
    assert set(records(pull(made(hub, code="none", issues=False)))) == {"acme/app/issues/2"}


def test_without_a_choice_it_is_all_that_the_account_sees(hub: Hub) -> None:
    def repositories(_asked: Asked, answer: Any) -> Any:
        return [
            {**hub._facts(answer[0], "app"), "archived": False},
            {**hub._facts(answer[0], "old"), "archived": True},
        ]

    hub.server.on("GET /user/repos", repositories)
    connector = made(hub, repositories=[], archived=False)
    assert set(end(pull(connector))["repositories"]) == {"acme/app"}
    assert [node.id for node in connector.browse("")] == ["acme/app", "acme/old"]
    connector.search("heron", 1)
    assert "user:ana" in hub.server.asked("GET /search/issues")[0]["q"]


def test_a_query_that_github_does_not_understand_finds_nothing(hub: Hub) -> None:
    hub.server.refuse_next(422, times=2)
    assert made(hub).search("heron " * 100, 3) == []
    assert len(hub.server.asked("GET /search/issues")[0]["q"]) < 256


def test_a_folder_that_github_does_not_list_whole_is_no_complete_listing(hub: Hub) -> None:
    def tree(_asked: Asked, answer: Any) -> Any:
        return {**answer, "tree": [], "truncated": True}

    hub.server.on("GET /repos/{owner}/{repo}/git/trees/{tree_sha}", tree)
    events = pull(made(hub))
    assert Complete("acme/app:code") not in events
    assert any(isinstance(one, Notice) for one in events)
    assert "head" not in end(events)["repositories"]["acme/app"]


def test_who_reads_follows_the_repository(hub: Hub) -> None:
    connector = made(hub)
    cursor = end(pull(connector))
    hub.private = False
    found = records(pull(connector, cursor))
    assert {frozenset(one.principals or ()) for one in found.values()} == {frozenset({"public"})}
    assert list(connector.memberships()) == []


def test_collaborators_are_members_by_their_mail_address(hub: Hub, vendor: StartVendor) -> None:
    def path(text: str) -> str:
        return f"/repos/acme/app{text}"

    hub.server.files[path("/collaborators")] = (
        b'[{"login": "ana"}, {"login": "bo"}, {"login": "x"}]'
    )
    hub.server.files["/users/bo"] = b'{"email": "bo@example.com"}'
    hub.server.files["/users/x"] = b'{"email": null}'
    connector = made(hub, people=["ana ana@example.com"])
    assert list(connector.memberships()) == [
        Membership("group:acme/app", "user:ana@example.com"),
        Membership("group:acme/app", "user:bo@example.com"),
    ]


def test_single_things_are_read_anew(hub: Hub) -> None:
    hub.issues = [issue(1)]
    connector = made(hub)

    def no_file(_asked: Asked, _answer: Any) -> None:
        raise Refusal(404)

    hub.server.on("GET /repos/{owner}/{repo}/contents/{path}", no_file)
    found = list(
        connector.fetch(
            ["acme/app/issues/1", "acme/app/issues/9", "acme/app/blob/a.md", "acme/gone/issues/1"]
        )
    )
    assert [type(one) for one in found] == [Record, Deletion, Deletion, Failure]


def test_limits_and_refusals_say_what_to_do(hub: Hub) -> None:
    connector = made(hub)
    hub.server.refuse_next(403, X_RateLimit_Remaining="0", X_RateLimit_Reset="4000000000")
    with pytest.raises(RateLimitedError):
        pull(connector)
    hub.server.refuse_next(401)
    with pytest.raises(CredentialsError):
        connector.check()
    hub.server.refuse_next(429, Retry_After="1")
    assert connector.check().startswith("ana on http://127.0.0.1")
    with pytest.raises(InvalidInputError, match="acme/gone"):
        made(hub, repositories=["https://github.com/acme/gone"]).check()
    with pytest.raises(InvalidInputError, match="owner/name"):
        made(hub, repositories=["acme"]).check()


def test_the_source_is_searched_within_the_chosen_repositories(hub: Hub) -> None:
    hits = made(hub).search('heron "repo:other/secret', 3)
    assert len(hits) == 2
    assert hits[0].external_id == "batterseapower/pinyin-toolkit/issues/132"
    asked = hub.server.asked("GET /search/issues")[0]["q"]
    assert asked == '"heron" "repo:other/secret" (is:issue OR is:pr) (repo:acme/app)'
    assert hub.server.asked("GET /search/code")[0]["q"].endswith("repo:acme/app")


def test_webhooks_are_believed_with_a_signature_only(hub: Hub) -> None:
    connector, body = made(hub), b"{}"
    good = "sha256=" + hmac.new(b"s3", body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": good, "X-GitHub-Event": "push"}
    assert connector.receive(headers, body).sync
    assert not connector.receive({**headers, "X-GitHub-Event": "ping"}, body).sync
    with pytest.raises(ForbiddenError):
        connector.receive(headers, b"{ }")
    with pytest.raises(ForbiddenError):
        connector.receive({}, body)


def test_a_run_stores_updates_and_deletes(
    hub: Hub, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    hub.issues = [issue(1, title="苍鹭", body="涉水。")]
    connection = connect(
        "github",
        config={"repositories": ["acme/app"], "api_url": hub.server.url},
        auth_method="token",
        credentials={"token": "t"},
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 3, "")
    hub.head, hub.trees = "c2", {"t1": {"README.md": "b9"}}
    hub.write("README.md", b"# App, second edition")
    run = syncs.run(connection)
    assert (run.status, run.updated, run.deleted) == ("succeeded", 1, 1)
    documents = syncs.documents()
    assert set(documents) == {"acme/app/blob/README.md", "acme/app/issues/1"}
    assert {one.status for one in documents.values()} == {"ready"}
