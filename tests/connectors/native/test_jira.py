"""Jira's own API description: projects with issues."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
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
    Notice,
    Record,
    Text,
)
from connectors.models import Connection
from connectors.native.atlassian.jira import JiraConnector
from connectors.native.atlassian.site import AtlassianSite
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
_SEARCH = "GET /rest/api/3/search/jql"


class Jira:
    """Issues by id."""

    def __init__(self, server: Vendor) -> None:
        self.server = server
        self.projects = {"10": "BIRD", "20": "FISH"}
        self.issues: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        self.comments: list[dict[str, Any]] = []
        server.on("GET /rest/api/3/myself", {"displayName": "Ana", "timeZone": "Asia/Shanghai"})
        server.on("GET /rest/api/3/project/search", self._projects)
        server.on(_SEARCH, self._search)
        server.on("GET /rest/api/3/issue/{issueIdOrKey}", self._issue)
        server.on("GET /rest/api/3/issue/{issueIdOrKey}/comment", self._comments)

    def add(self, key: str, summary: str, *, project: str = "10", **fields: Any) -> None:
        """Open an issue."""
        name = self.projects[project]
        known = {
            "summary": summary, "description": document("在湖边。"), "updated": "2025-01-02T00:00:00.000+0000",
            "created": "2025-01-01T00:00:00.000+0000", "status": {"name": "Open"}, "labels": ["wild"],
            "project": {"id": project, "key": name, "name": f"Project {name}"}, "issuetype": {"name": "Bug"},
            "reporter": {"displayName": "Bo"}, "priority": None, "components": [{"name": "Lake"}],
        }  # fmt: skip
        self.issues[key] = {"id": key, "key": f"{name}-{key}", "fields": {**known, **fields}}

    def _projects(self, asked: Asked, answer: Any) -> Any:
        start = int(asked.query["startAt"])
        rows = list(self.projects.items())[start : start + 1]
        values = [{"id": key, "key": name, "name": f"Project {name}"} for key, name in rows]
        return {**answer, "values": values, "isLast": start + 1 >= len(self.projects)}

    def _search(self, asked: Asked, _: Any) -> Any:
        jql = asked.query["jql"]
        if any(f"project = {key}" in jql for key in self.refused):
            raise Refusal(400)
        found = [
            one for one in self.issues.values()
            if "project = " not in jql or f"project = {one['fields']['project']['id']}" in jql
        ]  # fmt: skip
        if "updated >=" in jql:
            found = [one for one in found if one["fields"]["updated"].startswith("2026")]
        page, after = pages(found, asked.query.get("nextPageToken"), 2)
        return {"issues": page, "isLast": not after} | ({"nextPageToken": after} if after else {})

    def _issue(self, asked: Asked, _: Any) -> Any:
        if asked.path["issueIdOrKey"] not in self.issues:
            raise Refusal(404)
        return self.issues[asked.path["issueIdOrKey"]]

    def _comments(self, asked: Asked, _: Any) -> Any:
        start = int(asked.query["startAt"])
        return {
            "comments": self.comments[start : start + 2],
            "total": len(self.comments),
            "startAt": start,
        }


def document(text: str) -> dict[str, Any]:
    """A description or comment."""
    content = [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]
    return {"type": "doc", "version": 1, "content": content}


def comment(text: str, **facts: Any) -> dict[str, Any]:
    """A comment."""
    moment = "2025-01-03T00:00:00.000+0000"
    return {"author": {"displayName": "Cy"}, "created": moment, "body": document(text), **facts}


@pytest.fixture
def jira(vendor: StartVendor) -> Jira:
    return Jira(vendor("jira"))


def made(jira: Jira, **config: Any) -> JiraConnector:
    """A connector to it."""
    secrets = {"email": "ana@example.com", "token": "t", "webhook_secret": "s3"}
    return make_connector(JiraConnector, {"site": jira.server.url, **config}, secrets)


def pull(connector: JiraConnector, cursor: Cursor | None = None) -> list[Event]:
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


def text(record: Record) -> str:
    """What is said in it."""
    assert isinstance(record.body, Text)
    return record.body.text


def test_issues_of_all_projects_are_read(jira: Jira) -> None:
    for key in ("1", "2", "3"):
        jira.add(key, f"苍鹭 {key}")
    jira.add("4", "Carp", project="20", parent={"key": "FISH-9", "fields": {"summary": "Pond"}})
    events = pull(made(jira))
    found = records(events)
    assert set(found) == {"1", "2", "3", "4"}
    one = found["1"]
    assert (one.title, text(one), one.author) == ("BIRD-1: 苍鹭 1", "在湖边。", "Bo")
    assert one.metadata["status"] == "Open"
    assert one.metadata["components"] == ["Lake"]
    assert one.url == f"{jira.server.url}/browse/BIRD-1"
    assert found["4"].breadcrumbs == ("Project FISH", "FISH-9: Pond")
    assert {one.scope for one in events if isinstance(one, Complete)} == {"10", "20"}


def test_comments_are_part_of_the_issue_but_restricted_ones(jira: Jira) -> None:
    hidden = comment("Secret.", visibility={"type": "role", "value": "Administrators"})
    jira.add("1", "Heron", comment={"comments": [comment("看见了。"), hidden], "total": 2})
    jira.comments = [comment(f"Number {n}.") for n in range(5)]
    jira.add("2", "Stork", comment={"comments": jira.comments[:1], "total": 5})
    found = records(pull(made(jira)))
    assert text(found["1"]) == "在湖边。\n\n## Cy, 2025-01-03\n\n看见了。"
    assert text(found["2"]).count("## Cy") == 5
    assert "## Cy" not in text(records(pull(made(jira, comments=False)))["1"])


def test_a_later_run_asks_for_what_was_updated(jira: Jira) -> None:
    jira.add("1", "Heron")
    jira.add("2", "Stork")
    cursor = end(pull(made(jira)))
    cursor = {
        "projects": {key: {"since": "2025-06-01T00:02:00+00:00"} for key in cursor["projects"]}
    }
    jira.issues["1"]["fields"] |= {"summary": "New", "updated": "2026-01-01T00:00:00.000+0000"}
    events = pull(made(jira), cursor)
    assert {key: one.title for key, one in records(events).items()} == {"1": "BIRD-1: New"}
    assert not [one for one in events if isinstance(one, Complete)]
    asked = jira.server.asked(_SEARCH)[-2]["jql"]
    assert asked == 'project = 10 AND updated >= "2025-06-01 07:57" ORDER BY updated ASC'


def test_a_listing_goes_on_where_it_was_broken_off(jira: Jira) -> None:
    for key in "12345":
        jira.add(key, f"Heron {key}")
    first = next(one for one in made(jira).pull({}) if isinstance(one, Checkpoint))
    events = pull(made(jira), first.cursor)
    assert set(records(events)) == {"3", "4", "5"}
    assert Complete("10") not in events
    assert Complete("20") in events
    assert set(end(events)["projects"]["10"]) == {"since"}


def test_one_bad_project_does_not_lose_the_others(jira: Jira) -> None:
    jira.add("1", "Heron")
    jira.add("2", "Carp", project="20")
    jira.refused = {"10"}
    events = pull(made(jira))
    assert set(records(events)) == {"2"}
    notices = [one.message for one in events if isinstance(one, Notice)]
    assert notices == ["BIRD could not be read completely. 127.0.0.1 refuses the request (400)."]
    assert Complete("10") not in events
    jira.refused = set()
    assert Complete("10") in pull(made(jira), end(events)), "its next run is a whole one"


def test_projects_are_chosen_and_those_that_are_gone_are_swept(jira: Jira) -> None:
    jira.add("1", "Heron")
    jira.add("2", "Carp", project="20")
    assert set(records(pull(made(jira, projects=["fish"])))) == {"2"}
    assert set(records(pull(made(jira, exclude_projects=["FISH"])))) == {"1"}
    cursor = end(pull(made(jira)))
    del jira.projects["20"]
    assert Complete("20") in pull(made(jira), cursor)
    with pytest.raises(InvalidInputError, match="FROG"):
        made(jira, projects=["FROG"]).check()
    assert any(isinstance(one, Notice) for one in pull(made(jira, projects=["FROG"])))


def test_issues_with_a_security_level_are_left_out(jira: Jira) -> None:
    jira.add("1", "Heron", security={"name": "Board only"})
    assert records(pull(made(jira))) == {}
    assert set(records(pull(made(jira, restricted=True)))) == {"1"}
    assert list(made(jira).fetch(["1"])) == [Deletion("1")]
    assert made(jira).search("heron", 5) == []


def test_attachments_are_files(jira: Jira) -> None:
    facts = {"id": 7, "filename": "苍鹭.txt", "mimeType": "text/plain", "size": 6}
    jira.add("1", "Heron", attachment=[facts])
    jira.server.files["/rest/api/3/attachment/content/7"] = "苍鹭".encode()
    found = records(pull(made(jira, attachments=True)))
    record = found["1/attachment/7"]
    assert isinstance(record.body, File)
    with record.body.open() as file:
        assert file.read().decode() == "苍鹭"
    assert (record.version, record.breadcrumbs[-1]) == ("7", "BIRD-1: Heron")


def test_single_issues_are_read_anew(jira: Jira) -> None:
    jira.add("1", "Heron", attachment=[{"id": 7, "filename": "a.txt"}])
    found = list(made(jira, attachments=True).fetch(["1", "1/attachment/7", "1/attachment/8", "9"]))
    assert [type(one) for one in found] == [Record, Record, Deletion, Deletion]

    def refuse(_asked: Asked, _: Any) -> None:
        raise Refusal(403)

    jira.server.on("GET /rest/api/3/issue/{issueIdOrKey}", refuse)
    assert [type(one) for one in made(jira).fetch(["1"])] == [Failure]


def test_the_source_is_searched_within_what_is_configured(jira: Jira) -> None:
    jira.add("1", "Heron")
    connector = made(jira, projects=["BIRD"], jql="status = Open ORDER BY rank")
    hits = connector.search('苍鹭" OR project = "SECRET', 5)
    assert [(one.external_id, one.text) for one in hits] == [("1", "在湖边。")]
    assert jira.server.asked(_SEARCH)[-1]["jql"] == (
        'text ~ "苍鹭 OR project SECRET" AND project in ("BIRD") AND (status = Open)'
    )
    assert connector.search('"" \\', 5) == []


def test_limits_and_refusals_say_what_to_do(jira: Jira) -> None:
    jira.server.refuse_next(429, Retry_After="90")
    with pytest.raises(RateLimitedError):
        pull(made(jira))
    jira.server.refuse_next(401)
    with pytest.raises(CredentialsError):
        made(jira).check()
    assert made(jira).check() == f"Ana on {jira.server.url}: 2 projects"
    assert [node.id for node in made(jira).browse("")] == ["BIRD", "FISH"]


def test_webhooks_are_believed_with_a_signature_only(jira: Jira) -> None:
    good = "sha256=" + hmac.new(b"s3", b"{}", hashlib.sha256).hexdigest()
    assert made(jira).receive({"X-Hub-Signature": good}, b"{}").sync
    with pytest.raises(ForbiddenError):
        made(jira).receive({"X-Hub-Signature": good}, b"[]")


def test_a_sign_in_goes_through_the_gateway(jira: Jira, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AtlassianSite, "gateway", jira.server.url)
    sites = [
        {"id": "c1", "url": "https://birds.atlassian.net"},
        {"id": "c2", "url": "https://fish.atlassian.net"},
    ]
    jira.server.files["/oauth/token/accessible-resources"] = json.dumps(sites).encode()
    jira.server.files["/ex/jira/c1/rest/api/3/myself"] = b'{"displayName": "Ana"}'
    jira.server.files["/ex/jira/c1/rest/api/3/project/search"] = b'{"values": [], "isLast": true}'

    def signed_in(site: str) -> JiraConnector:
        return make_connector(JiraConnector, {"site": site}, {"access_token": "t"}, method="oauth")

    assert (
        signed_in("birds.atlassian.net").check() == "Ana on https://birds.atlassian.net: 0 projects"
    )
    with pytest.raises(InvalidInputError, match="fish"):
        signed_in("").check()
    with pytest.raises(InvalidInputError, match="other"):
        signed_in("https://other.atlassian.net").check()


def test_a_run_stores_updates_and_deletes(
    jira: Jira, connect: Callable[..., Connection], syncs: Syncs
) -> None:
    jira.add("1", "苍鹭")
    jira.add("2", "Stork")
    connection = connect(
        "jira",
        config={"site": jira.server.url},
        auth_method="token",
        credentials={"email": "ana@example.com", "token": "t"},
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 2, "")
    jira.issues["1"]["fields"] |= {"summary": "New", "updated": "2026-01-01T00:00:00.000+0000"}
    run = syncs.run(connection)
    assert (run.status, run.updated, run.deleted) == ("succeeded", 1, 0)
    del jira.issues["2"]
    run = syncs.run(connection, kind=type(run).Kind.FULL)
    assert (run.status, run.kept, run.deleted) == ("succeeded", 1, 1)
    assert syncs.documents()["1"].title == "BIRD-1: New"
