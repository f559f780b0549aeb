"""Issues of Jira Cloud with their comments and attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import Field, SecretStr

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Context,
    Cursor,
    Deletion,
    Event,
    Failure,
    LiveHit,
    LiveSearch,
    Node,
    Notice,
    OAuthTokens,
    Record,
    Refetch,
    Settings,
    WebhookAnswer,
    WebhookReceiver,
)
from connectors.native.atlassian.jira_records import IssueRecords
from connectors.native.atlassian.site import AtlassianSite, AtlassianToken, api_token, sign_in
from connectors.signatures import require_signature

_FIELDS = (
    "summary,description,status,issuetype,priority,assignee,reporter,labels,components,created,updated,"
    "project,parent,resolution,security,comment,attachment"
)
_PAGE = 100
_OVERLAP = timedelta(minutes=5)  # the index lags behind, and clocks differ


_SECRET = Field(
    default=SecretStr(""),
    title="Webhook secret",
    description="The secret of the webhook that tells of changes, if there is one.",
)


class JiraToken(AtlassianToken):
    """An account's API token."""

    webhook_secret: SecretStr = _SECRET


class JiraSignIn(OAuthTokens):
    """A sign-in."""

    webhook_secret: SecretStr = _SECRET


class JiraConfig(Settings):
    """Which issues."""

    site: str = Field(
        default="",
        title="Site",
        description="https://NAME.atlassian.net. May be empty after a sign-in for one site.",
    )
    projects: list[str] = Field(
        default=[], title="Only these projects", description="Keys; empty: all."
    )
    exclude_projects: list[str] = Field(default=[], title="Not these projects")
    jql: str = Field(
        default="", title="JQL", description="A further condition: issuetype != Sub-task."
    )
    comments: bool = Field(default=True, title="Comments")
    attachments: bool = Field(default=False, title="Attachments")
    restricted: bool = Field(
        default=False,
        title="Issues with a security level too",
        description="Jira shows them to few; here all readers of the base would see them.",
    )


class JiraConnector(Connector[JiraConfig], LiveSearch, Browsable, Refetch, WebhookReceiver):
    """Each project keeps the time of its last complete run. What is deleted shows in a full run only: Jira
    tells nobody. Comments that only a group or role may see are left out."""

    places_field = "projects"
    spec = ConnectorSpec(
        kind="jira",
        name="Jira",
        description="Issues with comments, fields and attachments.",
        category=Category.WORK,
        config=JiraConfig,
        auth=(
            api_token(JiraToken),
            sign_in("read:jira-work", "read:jira-user", credentials=JiraSignIn),
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        documentation_url="https://developer.atlassian.com/cloud/jira/platform/rest/v3/",
        rate_limit="10/second",
        sync_every_minutes=30,
    )

    def __init__(self, config: JiraConfig, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        self._site = AtlassianSite(context, credentials, config.site, "jira")
        self._records = IssueRecords(self._site, with_comments=config.comments)

    def check(self) -> str:
        """Who signs in, and that the projects are there."""
        projects = list(self._projects())
        if missing := self._missing(projects):
            raise InvalidInputError(
                f"There is no project {', '.join(missing)}, or it is not shown."
            )
        return f"{self._me['displayName']} on {self._site.url}: {len(projects)} projects"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """One project after the other. One that cannot be read is reported and left as it was."""
        positions: dict[str, dict[str, str]] = {
            key: dict(one) for key, one in cursor.get("projects", {}).items()
        }
        projects = list(self._projects())
        for key in self._missing(projects):
            yield Notice(f"Project {key} is not there, or is not shown.")
        for project in projects:
            position = positions.setdefault(project["id"], {})
            try:
                for event in self._read(project, position):
                    yield event or _checkpoint(positions)
            except RejectedError as error:
                yield Notice(f"{project['key']} could not be read completely. {error.message}")
        for gone in positions.keys() - {one["id"] for one in projects}:
            yield Complete(gone)
            del positions[gone]
        yield _checkpoint(positions)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single issues and attachments, which are named after their issue."""
        for external_id in external_ids:
            key = external_id.partition("/")[0]
            try:
                issue = self._site.find(f"/rest/api/3/issue/{key}", fields=_FIELDS)
                found = {one.external_id: one for one in self._events(issue)} if issue else {}
            except RejectedError as error:
                yield Failure(external_id, error.message)
                continue
            yield found.get(external_id) or Deletion(external_id)

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Jira's own text search, within what is configured."""
        words = " ".join(re.sub(r"[^\w\s]", " ", query).split())
        if not words:
            return []
        keys = ", ".join(f'"{_key(key)}"' for key in self.config.projects)
        hidden = ", ".join(f'"{_key(key)}"' for key in self.config.exclude_projects)
        jql = self._jql(
            f'text ~ "{words}"',
            f"project in ({keys})" if keys else "",
            f"project not in ({hidden})" if hidden else "",
        )
        answer = self._issues(jql, "", min(limit, _PAGE))
        return [self._records.hit(one) for one in answer["issues"] if self._may_show(one)]

    def browse(self, parent: str) -> list[Node]:
        """Projects."""
        return [] if parent else [Node(one["key"], one["name"]) for one in self._all_projects()]

    def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks"""
        found = {name.lower(): value for name, value in headers.items()}
        secret: SecretStr = getattr(self.credentials, "webhook_secret", SecretStr(""))
        require_signature(secret, found.get("x-hub-signature", ""), body)
        return WebhookAnswer()

    # --- a project -------------------------------------------------------------------------------

    def _read(self, project: Mapping[str, Any], position: dict[str, str]) -> Iterator[Event | None]:
        """None where a position may be kept. Only a listing that begins here, of everything, tells what is
        gone."""
        is_whole, at = not position, dict(position)
        if "jql" not in at:
            at |= {"started": datetime.now(UTC).isoformat(), "page": ""}
            at["jql"] = self._project_jql(project, at.get("since", ""))
        while True:
            answer = self._page(at["jql"], at["page"])
            for issue in answer["issues"]:
                yield from self._events(issue, is_whole=is_whole)
            at["page"] = answer.get("nextPageToken") or ""
            if answer.get("isLast") or not at["page"]:
                break
            position |= at
            yield None
        if is_whole:
            yield Complete(project["id"])
        position.clear()
        position["since"] = at["started"]
        yield None

    def _page(self, jql: str, page: str) -> Any:
        try:
            return self._issues(jql, page)
        except RejectedError as error:
            if error.status != 400 or not page:
                raise
            return self._issues(jql, "")  # the token has run out

    def _issues(self, jql: str, page: str, limit: int = _PAGE) -> Any:
        params = {"nextPageToken": page} if page else {}
        return self._site.get(
            "/rest/api/3/search/jql", jql=jql, fields=_FIELDS, maxResults=limit, **params
        )

    def _project_jql(self, project: Mapping[str, Any], since: str) -> str:
        scope = f"project = {project['id']}"
        if not since:
            return f"{self._jql(scope)} ORDER BY created ASC"
        # JQL has times in the account's own zone, to the minute.
        zone = ZoneInfo(self._me.get("timeZone") or "UTC")
        begin = (datetime.fromisoformat(since) - _OVERLAP).astimezone(zone)
        condition = f'updated >= "{begin:%Y-%m-%d %H:%M}"'
        return f"{self._jql(scope, condition)} ORDER BY updated ASC"

    def _jql(self, *conditions: str) -> str:
        own = re.split(r"\border\s+by\b", self.config.jql, flags=re.IGNORECASE)[0].strip()
        return " AND ".join([*filter(None, conditions), *([f"({own})"] if own else [])])

    # --- an issue --------------------------------------------------------------------------------

    def _may_show(self, issue: Mapping[str, Any]) -> bool:
        return self.config.restricted or not issue["fields"].get("security")

    def _events(
        self, issue: Mapping[str, Any], *, is_whole: bool = False
    ) -> Iterator[Record | Deletion | Failure]:
        if not self._may_show(issue):
            if not is_whole:
                yield Deletion(issue["id"])
            return
        fields = issue["fields"]
        try:
            yield self._records.issue(issue)
        except RejectedError as error:
            yield Failure(issue["id"], error.message, fields["project"]["id"])
        if self.config.attachments:
            for one in fields.get("attachment") or ():
                yield self._records.attachment(issue, one, self.context.max_bytes)

    # --- what there is ---------------------------------------------------------------------------

    @cached_property
    def _me(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._site.get("/rest/api/3/myself")
        return found

    def _projects(self) -> Iterator[Mapping[str, Any]]:
        wanted = {key.upper() for key in self.config.projects}
        unwanted = {key.upper() for key in self.config.exclude_projects}
        for project in self._all_projects():
            if project["key"] not in unwanted and (not wanted or project["key"] in wanted):
                yield project

    def _all_projects(self) -> Iterator[Mapping[str, Any]]:
        start = 0
        while True:
            answer = self._site.get(
                "/rest/api/3/project/search", startAt=start, maxResults=_PAGE, orderBy="key"
            )
            yield from answer["values"]
            start += len(answer["values"])
            if answer.get("isLast", True) or not answer["values"]:
                return

    def _missing(self, projects: Sequence[Mapping[str, Any]]) -> list[str]:
        present = {one["key"] for one in projects}
        return [key for key in self.config.projects if key.upper() not in present]


def _checkpoint(positions: Mapping[str, Mapping[str, str]]) -> Checkpoint:
    return Checkpoint({"projects": {key: dict(one) for key, one in positions.items()}})


def _key(text: str) -> str:
    """A project's key within JQL."""
    return re.sub(r"[^\w]", "", text)
