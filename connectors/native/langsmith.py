"""Root runs of LangSmith projects: what ran, for how long, at what cost, and how it failed.

What went in and came out is never asked for: it may hold anything that users of the traced programs have typed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from pydantic import Field

from config.errors import RejectedError
from config.http import HttpClient
from connectors.base import (
    Capability,
    Category,
    Checkpoint,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    Notice,
    Record,
    Settings,
    Text,
    token_auth,
)
from connectors.native.paging import Page, follow_pages

_PAGE = 100
_OVERLAP = timedelta(hours=1)  # runs that were not over when they were read
_LONGEST_ERROR = 2_000
_SELECT = (
    "id", "name", "run_type", "start_time", "end_time", "status", "error", "session_id", "trace_id",
    "total_tokens", "prompt_tokens", "completion_tokens", "total_cost", "tags", "app_path", "dotted_order",
)  # fmt: skip

Json = Mapping[str, Any]


class LangSmithConfig(Settings):
    """Which projects, and how much of them."""

    region: Literal["us", "eu", "apac", "aws"] = Field(default="us", title="Region")
    workspaces: list[str] = Field(
        default=[], title="Workspaces", description="Names or ids; empty: all that the key sees."
    )
    projects: list[str] = Field(
        default=[],
        title="Projects",
        description="Names, or patterns such as prod-*; empty: all of them.",
    )
    errors_only: bool = Field(default=False, title="Failed runs only")
    days: int = Field(
        default=7, ge=1, le=400, title="Days of history", description="Of the first sync."
    )
    max_runs: int = Field(
        default=200,
        ge=1,
        le=5_000,
        title="Runs of a project in each sync",
        description="The next sync goes on where one has stopped.",
    )


class LangSmithConnector(Connector[LangSmithConfig]):
    """Reads forwards in time, project by project."""

    hosts = {
        "us": "https://api.smith.langchain.com",
        "eu": "https://eu.api.smith.langchain.com",
        "apac": "https://apac.api.smith.langchain.com",
        "aws": "https://aws.api.smith.langchain.com",
    }
    spec = ConnectorSpec(
        kind="langsmith",
        name="LangSmith",
        description="Runs of traced programs: status, latency, cost and errors, never inputs or outputs.",
        category=Category.CODE,
        config=LangSmithConfig,
        auth=(token_auth("API key", header="X-API-Key", scheme="", hint="lsv2_…"),),
        capabilities=frozenset({Capability.INCREMENTAL}),
        documentation_url="https://docs.smith.langchain.com",
        rate_limit="10/10 second",
    )

    def check(self) -> str:
        """The workspaces."""
        names = [str(one["display_name"]) for one in self._workspaces()]
        if not names:
            raise RejectedError("The key sees none of these workspaces.")
        return ", ".join(names)[:200]

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Each project's runs since the last one that was read. A project that fails is a warning."""
        read_to: dict[str, str] = dict(cursor.get("projects", {}))
        for workspace in self._workspaces():
            http = self._http(str(workspace["id"]))
            try:
                projects = [one for page in self._projects(http) for one in page]
            except RejectedError as error:
                yield Notice(f"{workspace['display_name']} could not be read. {error.message}")
                continue
            for project in projects:
                try:
                    yield from self._read(http, workspace, project, read_to)
                except RejectedError as error:
                    yield Notice(f"{project.get('name')} could not be read. {error.message}")
        yield Checkpoint({"projects": read_to})

    def _read(
        self, http: HttpClient, workspace: Json, project: Json, read_to: dict[str, str]
    ) -> Iterator[Event]:
        name = str(project["id"])
        since = read_to.get(name) or _text_of(datetime.now(UTC) - timedelta(days=self.config.days))
        count, last = 0, ""
        for page in follow_pages(partial(self._runs, http, name, since)):
            for run in page[: self.config.max_runs - count]:
                last = max(last, str(run.get("start_time") or ""))
                yield self._record(workspace, project, run)
            count += len(page)
            if count >= self.config.max_runs:
                # Without an overlap, which could be longer than what is read in a sync.
                read_to[name] = max(last, since)
                break
            yield Checkpoint({"projects": {**read_to, **({name: last} if last > since else {})}})
        else:
            if last:
                read_to[name] = max(since, _text_of(_moment(last) - _OVERLAP))
        yield Checkpoint({"projects": dict(read_to)})

    def _workspaces(self) -> list[Json]:
        found: list[Json] = self._http().get_json("api/v1/workspaces")
        wanted = self.config.workspaces
        return [
            one
            for one in found
            if not one.get("is_deleted")
            and (not wanted or {str(one["id"]), str(one["display_name"])} & set(wanted))
        ]

    def _projects(self, http: HttpClient) -> Iterator[list[Json]]:
        def fetch(cursor: str) -> Page[Json]:
            start = int(cursor or 0)
            params = {"offset": start, "limit": _PAGE, "reference_free": "true"}
            found: list[Json] = http.get_json("api/v1/sessions", params)
            wanted = [one for one in found if self._is_wanted(str(one.get("name")))]
            return wanted, str(start + len(found)) if len(found) == _PAGE else ""

        return follow_pages(fetch)

    def _is_wanted(self, name: str) -> bool:
        patterns = self.config.projects
        return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)

    def _runs(self, http: HttpClient, project: str, since: str, cursor: str) -> Page[Json]:
        body = {
            "session": [project],
            "is_root": True,
            "start_time": since,
            "order": "asc",
            "limit": min(_PAGE, self.config.max_runs),
            "select": list(_SELECT),
            **({"error": True} if self.config.errors_only else {}),
            **({"cursor": cursor} if cursor else {}),
        }
        answer = http.post_json("api/v1/runs/query", body)
        return answer["runs"], (answer.get("cursors") or {}).get("next") or ""

    def _record(self, workspace: Json, project: Json, run: Json) -> Record:
        facts = _facts(run)
        lines = [
            f"- {label}: {value}" for label, value in facts.items() if value not in (None, "", [])
        ]
        error = str(run.get("error") or "")
        shown = error[:_LONGEST_ERROR] + ("…" if len(error) > _LONGEST_ERROR else "")
        name, place = str(run.get("name") or "Run"), str(project.get("name"))
        return Record(
            external_id=str(run["id"]),
            title=f"{name}: {run.get('status')}",
            body=Text(
                "\n".join(
                    [
                        f"# {name} in {place}",
                        "",
                        *lines,
                        *(["", "## Error", "", shown] if shown else []),
                    ]
                )
            ),
            version=str(run.get("end_time") or ""),
            url=self._page_of(run),
            breadcrumbs=(str(workspace["display_name"]), place),
            created_at=_moment(run["start_time"]) if run.get("start_time") else None,
            updated_at=_moment(run["end_time"]) if run.get("end_time") else None,
            metadata={"project": place, "trace_id": run.get("trace_id"), **facts},
        )

    def _page_of(self, run: Json) -> str:
        path = str(run.get("app_path") or "")
        host = self.hosts[self.config.region].replace("api.", "", 1)
        return f"{host}{path}" if path.startswith("/") else ""

    def _http(self, workspace: str = "") -> HttpClient:
        headers = {"X-Tenant-Id": workspace} if workspace else {}
        return self.context.client(self.hosts[self.config.region], headers=headers)


def _facts(run: Json) -> dict[str, Any]:
    start, end = run.get("start_time"), run.get("end_time")
    seconds = (_moment(end) - _moment(start)).total_seconds() if start and end else None
    return {
        "status": run.get("status"),
        "run_type": run.get("run_type"),
        "latency_s": seconds,
        "tokens": run.get("total_tokens"),
        "cost": run.get("total_cost"),
        "tags": run.get("tags") or [],
    }


def _moment(text: Any) -> datetime:
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _text_of(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
