"""A git repository: the files of some branches, and recent commits if wanted.

A bare mirror is kept between runs. The cursor names the commit that each branch was read at; a later run
reads what differs from it. Where that cannot be done (another set of branches, rewritten history, another
configuration) everything is listed, which is cheap: contents whose blob is known are not read again.
"""

from __future__ import annotations

import fnmatch
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from pathlib import PurePosixPath
from typing import BinaryIO

from config.errors import InvalidInputError, RejectedError, TransientError
from connectors.base import (
    NO_AUTH,
    AuthMethod,
    BasicCredentials,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Deletion,
    Event,
    File,
    Record,
    Refetch,
    Text,
    TokenCredentials,
)
from connectors.native.git_repo.addresses import Place, place_of, remote_of
from connectors.native.git_repo.command import (
    DamagedMirrorError,
    Git,
    NothingThereError,
    Remote,
    basic_header,
)
from connectors.native.git_repo.history import Change, Commit, changes_between, commits_between
from connectors.native.git_repo.settings import DEPTH, GitRepoConfig, GitToken, SshKey
from connectors.patterns import is_wanted

_PAGE = 200
_MOST_PATHS = 100  # that a commit's document names
_ASK_S, _FETCH_S = 60.0, 3600.0
_READABLE = frozenset({".pdf", ".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm"})


class GitRepoConnector(Connector[GitRepoConfig], Refetch):
    """Files have `branch:path` as their id, commits `commit sha`; neither can be the other."""

    spec = ConnectorSpec(
        kind="git-repo",
        name="Git repository",
        description="Files and commits of any git repository, by address or in a folder of the server.",
        category=Category.CODE,
        config=GitRepoConfig,
        auth=(
            NO_AUTH,
            AuthMethod("token", "Access token", GitToken),
            AuthMethod("basic", "User name and password", BasicCredentials),
            AuthMethod("bearer", "Bearer token", TokenCredentials),
            AuthMethod("ssh_key", "SSH key", SshKey),
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        sync_every_minutes=30,
    )

    def check(self) -> str:
        """The branches that would be read."""
        heads = self._heads(self._prepared(), self._remote())
        return f"{self._place().name}: {', '.join(heads)}"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Everything, or what differs from the commits of the cursor."""
        git, heads = self._fetched()
        known: Mapping[str, str] = cursor.get("commits", {})
        follows = known.keys() == heads.keys() and all(
            git.succeeds("merge-base", "--is-ancestor", known[branch], heads[branch])
            for branch in heads
        )
        for branch, commit in heads.items():
            old = known[branch] if follows else None
            if old == commit:
                continue
            for number, event in enumerate(self._events(git, branch, old, commit), start=1):
                yield event
                if number % _PAGE == 0:
                    yield Checkpoint(cursor)
            if follows:
                cursor = {"commits": {**cursor["commits"], branch: commit}}
                yield Checkpoint(cursor)
        if not follows:
            yield Complete()
        yield Checkpoint({"commits": heads})

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files and commits, out of a listing of everything."""
        git, heads = self._fetched()
        missing = dict.fromkeys(external_ids)
        for branch, commit in heads.items():
            for event in self._events(git, branch, None, commit):
                if isinstance(event, Record) and event.external_id in missing:
                    del missing[event.external_id]
                    yield event
        yield from (Deletion(external_id) for external_id in missing)

    # --- what there is -------------------------------------------------------------------------

    def _events(
        self, git: Git, branch: str, old: str | None, new: str
    ) -> Iterator[Record | Deletion]:
        last: dict[str, Commit] = {}
        for number, commit in enumerate(commits_between(git, old, new, DEPTH)):
            self.context.pause(0)
            if number < self.config.commits:
                yield self._commit_record(branch, commit)
            for path in commit.paths:
                last.setdefault(path, commit)
        for change in changes_between(git, old, new):
            self.context.pause(0)
            if self._is_wanted(change):
                yield self._file_record(git, branch, change, last.get(change.path))
            elif old is not None:
                yield Deletion(f"{branch}:{change.path}")

    def _is_wanted(self, change: Change) -> bool:
        readable = not change.is_binary or PurePosixPath(change.path).suffix.lower() in _READABLE
        return (
            change.is_file
            and readable
            and change.size <= self.config.max_file_kb * 1024
            and is_wanted(change.path, self.config.include, self.config.exclude)
        )

    def _file_record(self, git: Git, branch: str, change: Change, last: Commit | None) -> Record:
        place, path = self._place(), PurePosixPath(change.path)
        above = (place.name, branch) if self.config.branches else (place.name,)
        return Record(
            external_id=f"{branch}:{change.path}",
            title=path.name,
            body=File(partial(_opened, git, change.blob), path.name, size=change.size),
            version=change.blob,
            url=place.file_page(branch, change.path),
            author=last.author if last else "",
            breadcrumbs=(*above, *path.parts[:-1]),
            updated_at=last.moment if last else None,
            metadata={"repository": place.name, "branch": branch, "path": change.path},
        )

    def _commit_record(self, branch: str, commit: Commit) -> Record:
        place = self._place()
        lines = [f"# {commit.subject}", commit.body]
        lines.append("\n".join(f"- `{path}`" for path in commit.paths[:_MOST_PATHS]))
        return Record(
            external_id=f"commit {commit.sha}",
            title=commit.subject,
            body=Text("\n\n".join(line for line in lines if line)),
            version=commit.sha,
            url=place.commit_page(commit.sha),
            author=commit.author,
            breadcrumbs=(place.name, "Commits"),
            created_at=commit.moment,
            updated_at=commit.moment,
            metadata={"repository": place.name, "commit": commit.sha},
        )

    # --- the mirror ----------------------------------------------------------------------------

    def _fetched(self) -> tuple[Git, dict[str, str]]:
        """The mirror as the source is now, and the commits of its branches."""
        git, remote = self._prepared(), self._remote()
        heads = self._heads(git, remote)
        git.unlock()
        try:
            self._fetch(git, remote, heads)
        except DamagedMirrorError:
            self.context.log.warning("The mirror of %s was damaged", self._place().name)
            git.prepare()
            self._fetch(git, remote, heads)
        return git, heads

    def _fetch(self, git: Git, remote: Remote, heads: Mapping[str, str]) -> None:
        has_history = bool(git.read("for-each-ref", "--count=1"))
        git.ask(
            remote, "fetch", "--quiet", "--no-tags", "--prune", "--no-write-fetch-head",
            *([] if has_history else [f"--depth={DEPTH}"]), "--", remote.address,
            *(f"+refs/heads/{branch}:refs/heads/{branch}" for branch in heads),
            timeout_s=_FETCH_S,
        )  # fmt: skip
        for branch in heads:  # somebody may have pushed since the branches were listed
            if not git.succeeds("cat-file", "-e", f"{heads[branch]}^{{commit}}"):
                raise TransientError(f"The branch {branch} was rewritten during the run.")

    def _heads(self, git: Git, remote: Remote) -> dict[str, str]:
        """The branches to be read with their commits."""
        asked = ("ls-remote", "--symref", "--", remote.address, "HEAD", "refs/heads/*")
        lines = git.ask(remote, *asked, timeout_s=_ASK_S).decode(errors="replace").splitlines()
        rows = [line.split("\t") for line in lines if "\t" in line]
        default = next((a[5:] for a, b in rows if b == "HEAD" and a.startswith("ref: ")), "")
        heads = {b[11:]: a for a, b in rows if b.startswith("refs/heads/")}
        wanted = self.config.branches or [default.removeprefix("refs/heads/")]
        chosen = {
            branch: commit
            for branch, commit in sorted(heads.items())
            if any(fnmatch.fnmatchcase(branch, pattern) for pattern in wanted)
        }
        if not chosen:  # nothing to read is no reason to delete
            known = ", ".join(sorted(heads)[:20]) or "none"
            kind = RejectedError if heads else NothingThereError
            raise kind(f"There is no branch {', '.join(wanted)}. There are: {known}.")
        return chosen

    def _prepared(self) -> Git:
        """A mirror for this address; one for another is removed."""
        mirror = f"git-{sha256(self._place().address.encode()).hexdigest()[:16]}"
        for other in self.context.cache.glob("git-*"):
            if other.name != mirror:
                shutil.rmtree(other, ignore_errors=True)
        git = Git(self.context.cache / mirror, self.context.pause, self.config.max_file_kb * 1024)
        git.prepare()
        return git

    def _place(self) -> Place:
        return place_of(self.config.repository)

    def _remote(self) -> Remote:
        place, given = self._place(), self.credentials
        header = private_key = ""
        match given:
            case GitToken(token=token, username=username):
                header = basic_header(username, token.get_secret_value())
            case BasicCredentials(username=username, password=password):
                header = basic_header(username, password.get_secret_value())
            case TokenCredentials(token=token):
                header = f"Bearer {token.get_secret_value()}"
            case SshKey(private_key=key):
                private_key = key.get_secret_value()
            case _:
                pass
        if (header and place.protocol == "ssh") or (private_key and place.protocol != "ssh"):
            raise InvalidInputError("These credentials do not fit the address of the repository.")
        return remote_of(place, header, private_key)


def _opened(git: Git, blob: str) -> AbstractContextManager[BinaryIO]:
    return git.open("cat-file", "blob", blob)
