"""GitHub, and GitHub Enterprise under an address of one's own.

Discussions come by GraphQL. A wiki is a git repository of its own, read as the git connector does. Everything
else comes by REST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

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
    Membership,
    Memberships,
    Node,
    Notice,
    OAuthEndpoints,
    Record,
    Refetch,
    Settings,
    WebhookAnswer,
    WebhookReceiver,
    oauth,
    token_auth,
)
from connectors.native.github.api import GithubApi
from connectors.native.github.discussions import Discussions
from connectors.native.github.repository import IncompleteTreeError, Repository, Wanted
from connectors.native.github.search import repository_name, search_github
from connectors.native.github.settings import GithubConfig, GithubSignIn, GithubToken
from connectors.native.github.wiki import Wiki, forget_wiki
from connectors.signatures import require_signature

_STREAMS = ("code", "issues", "discussions", "releases", "wiki")
_ID = re.compile(
    r"(?P<repository>[^/]+/[^/]+)/(?P<kind>blob|issues|discussions|releases|wiki)/(?P<rest>.+)",
    re.DOTALL,
)


class GithubConnector(
    Connector[GithubConfig], LiveSearch, Memberships, Browsable, Refetch, WebhookReceiver
):
    """Each repository keeps its own position: the commit that was read, and the time up to which issues
    were. One that cannot be read is reported and left as it was."""

    places_field = "repositories"
    spec = ConnectorSpec(
        kind="github",
        name="GitHub",
        description="Files, issues, pull requests with reviews, discussions, releases and wikis.",
        category=Category.CODE,
        config=GithubConfig,
        auth=(
            replace(
                token_auth(
                    "Personal access token",
                    hint="Needs to read contents, issues, discussions and metadata.",
                ),
                credentials=GithubToken,
            ),
            replace(
                oauth(
                    OAuthEndpoints(
                        "https://github.com/login/oauth/authorize",
                        "https://github.com/login/oauth/access_token",
                        scopes=("repo", "read:org", "read:user"),
                        basic_client=False,
                    ),
                    "Sign in with GitHub",
                ),
                credentials=GithubSignIn,
            ),
        ),
        capabilities=frozenset(
            {
                Capability.INCREMENTAL,
                Capability.DELETIONS,
                Capability.FILES,
                Capability.ACCESS_CONTROL,
            }
        ),
        documentation_url="https://docs.github.com/rest",
        rate_limit="5000/hour",
    )

    def __init__(self, config: GithubConfig, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        self._api = GithubApi(context.client(config.api_url, headers=headers), config.api_url)
        self._wanted = Wanted(
            config.branch, config.include, config.exclude, config.max_file_kb * 1000
        )

    def check(self) -> str:
        """Who signs in, and that every repository is there."""
        login = self._api.get("/user")["login"]
        for name in self.config.repositories:
            if self._api.find(f"/repos/{repository_name(name)}") is None:
                raise InvalidInputError(f"{login} sees no repository {name}.")
        if self.config.organisation:
            self._api.get(f"/orgs/{self.config.organisation}/repos", per_page=1)
        return f"{login} on {self.config.api_url}"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """One repository after the other; a position is kept after each step."""
        positions: dict[str, dict[str, str]] = {
            name: dict(position) for name, position in cursor.get("repositories", {}).items()
        }
        present = set[str]()
        for found in self._repositories():
            if isinstance(found, Failure):  # not reached, which does not mean that it is gone
                present.add(found.external_id)
                yield Notice(f"{found.external_id} was left out. {found.message}")
                continue
            present.add(found.name)
            position = positions.setdefault(found.name, {})
            if position.get("readers") != found.readers:
                position.clear()  # every document is to learn who may read it now
                position["readers"] = found.readers
            yield from self._read(found, positions)
        for name in positions.keys() - present:
            yield from (Complete(f"{name}:{stream}") for stream in _STREAMS)
            forget_wiki(self.context, name)
            del positions[name]
        yield _checkpoint(positions)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files, issues, discussions and pages. Releases come whole with every run."""
        repositories: dict[str, Repository] = {}
        for external_id in external_ids:
            match = _ID.fullmatch(external_id)
            if not match or match["kind"] == "releases":
                continue
            name = match["repository"]
            try:
                if name not in repositories:
                    repositories[name] = self._repository(self._api.get(f"/repos/{name}"))
                event = self._find(repositories[name], match["kind"], match["rest"])
                if event is not None:
                    yield event
            except RejectedError as error:
                yield Failure(external_id, error.message)

    def memberships(self) -> Iterator[Membership]:
        """The collaborators of private repositories. Where they are not shown, nobody is one."""
        known = dict(line.split(maxsplit=1) for line in self.config.people if " " in line.strip())
        for found in self._repositories():
            if isinstance(found, Failure) or found.readers == "public":
                continue
            for login in self._collaborators(found.name):
                if login not in known:
                    known[login] = (self._api.find(f"/users/{login}") or {}).get("email") or ""
                if known[login]:
                    yield Membership(f"group:{found.name}", f"user:{known[login].strip()}")

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Issues and pull requests first, then code."""
        return search_github(self._api, self.config, query, limit)

    def browse(self, parent: str) -> list[Node]:
        """The repositories that the account sees."""
        rows = [] if parent else self._api.rows("/user/repos", sort="full_name")
        return [Node(row["full_name"], row["full_name"]) for row in rows]

    def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries"""
        found = {name.lower(): value for name, value in headers.items()}
        secret: SecretStr = getattr(self.credentials, "webhook_secret", SecretStr(""))
        require_signature(secret, found.get("x-hub-signature-256", ""), body)
        return WebhookAnswer(sync=found.get("x-github-event") != "ping")

    # --- one repository after the other ----------------------------------------------------------

    def _read(
        self, repository: Repository, positions: dict[str, dict[str, str]]
    ) -> Iterator[Event]:
        for step in (self._code, self._issues, self._discussions, self._releases, self._wiki):
            try:
                for event in step(repository, positions[repository.name]):
                    yield event or _checkpoint(positions)
            except RejectedError as error:
                yield Notice(f"{repository.name} could not be read completely. {error.message}")

    def _repositories(self) -> Iterator[Repository | Failure]:
        config, seen = self.config, set[str]()
        for name in config.repositories:
            try:
                found = self._repository(self._api.get(f"/repos/{repository_name(name)}"))
            except RejectedError as error:
                yield Failure(repository_name(name), error.message)
                continue
            seen.add(found.name)
            yield found
        if config.organisation:
            rows = self._api.rows(f"/orgs/{config.organisation}/repos", sort="full_name")
        elif not config.repositories:
            rows = self._api.rows("/user/repos", sort="full_name")
        else:
            return
        for row in rows:
            if row["full_name"] not in seen and (config.archived or not row.get("archived")):
                yield self._repository(row)

    def _find(self, repository: Repository, kind: str, rest: str) -> Record | Deletion | None:
        match kind:
            case "blob":
                return repository.file(rest)
            case "discussions":
                return Discussions(self._api, repository).find(rest)
            case "wiki":
                return Wiki(repository, self.context).find(rest)
            case _:
                return repository.issue(rest)

    def _repository(self, facts: Mapping[str, Any]) -> Repository:
        return Repository(self._api, facts, self._wanted)

    def _code(self, repository: Repository, position: dict[str, str]) -> Iterator[Event | None]:
        """None where a position may be kept."""
        if self.config.code == "none":
            return
        head, complete = repository.head(), True
        if head is not None and head.commit == position.get("head"):
            return
        if head is not None and self.config.code == "all":
            try:
                yield from repository.files(head)
            except IncompleteTreeError as error:
                complete = False
                yield Notice(f"{repository.name} holds more files in /{error} than GitHub lists.")
        elif head is not None and (readme := repository.readme()) is not None:
            yield readme
        if complete:
            yield Complete(repository.scope("code"))
            position["head"] = head.commit if head else ""
        yield None

    def _issues(self, repository: Repository, position: dict[str, str]) -> Iterator[Event | None]:
        if not self.config.issues and not self.config.pull_requests:
            return
        begun = position.get("issues", "")
        for rows in repository.issues(begun):
            for row in rows:
                position["issues"] = row["updated_at"]
                if self.config.pull_requests if "pull_request" in row else self.config.issues:
                    yield repository.issue_record(row)
            yield None
        if not begun:
            yield Complete(repository.scope("issues"))

    def _discussions(
        self, repository: Repository, position: dict[str, str]
    ) -> Iterator[Event | None]:
        if not self.config.discussions:
            return
        if not repository.has("discussions"):
            position.pop("discussions", None)
            yield Complete(repository.scope("discussions"))
            return
        begun = newest = position.get("discussions", "")
        discussions = Discussions(self._api, repository)
        for rows in discussions.pages(begun):
            yield from map(discussions.record, rows)
            newest = max([newest, *(row["updatedAt"] for row in rows)])
            # Where the newest come first, nothing is certain before the end.
            position["discussions"] = begun or newest
            yield None
        position["discussions"] = newest
        if not begun:
            yield Complete(repository.scope("discussions"))
        yield None

    def _releases(self, repository: Repository, _position: object) -> Iterator[Event | None]:
        if self.config.releases:
            yield from repository.releases()
            yield Complete(repository.scope("releases"))

    def _wiki(self, repository: Repository, position: dict[str, str]) -> Iterator[Event | None]:
        if not self.config.wiki:
            return
        if repository.has("wiki"):
            yield from Wiki(repository, self.context).changes(position)
            return
        position.pop("wiki", None)
        yield Complete(repository.scope("wiki"))

    def _collaborators(self, name: str) -> list[str]:
        try:
            return [row["login"] for row in self._api.rows(f"/repos/{name}/collaborators")]
        except RejectedError as error:
            if error.status not in {403, 404}:
                raise
            self.context.log.warning("Collaborators of %s are not shown: %s", name, error.message)
            return []


def _checkpoint(positions: Mapping[str, Mapping[str, str]]) -> Checkpoint:
    return Checkpoint({"repositories": {name: dict(one) for name, one in positions.items()}})
