"""What one repository holds: the files of a branch, issues with pull requests, releases."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import quote

from connectors.base import Deletion, Event, Failure, File, Record, Text
from connectors.native.github.api import PAGE, GithubApi

# Formats that hold no text and whose names do not say so to the engine.
_WITHOUT_TEXT = frozenset(
    [
        ".7z",
        ".a",
        ".bin",
        ".class",
        ".db",
        ".dll",
        ".dylib",
        ".exe",
        ".gz",
        ".ico",
        ".jar",
        ".lockb",
        ".o",
        ".pyc",
        ".so",
        ".sqlite",
        ".tar",
        ".tgz",
        ".ttf",
        ".wasm",
        ".whl",
        ".woff",
        ".woff2",
        ".xz",
        ".zip",
    ]
)
_FILE_MODES = frozenset({"100644", "100755"})  # no links, no submodules


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files are read."""

    branch: str = ""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_bytes: int = 1_000_000

    def takes(self, path: str) -> bool:
        """Whether a file's name asks for it to be read."""
        if PurePosixPath(path).suffix.lower() in _WITHOUT_TEXT:
            return False
        return (not self.include or _matches(path, self.include)) and not _matches(
            path, self.exclude
        )


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of the branch."""

    commit: str
    tree: str


class IncompleteTreeError(Exception):
    """GitHub does not give the whole listing of a folder."""


class Repository:
    """One repository, as GitHub describes it."""

    def __init__(self, api: GithubApi, facts: Mapping[str, Any], wanted: Wanted) -> None:
        self._api, self._facts, self._wanted = api, facts, wanted
        self.name: str = facts["full_name"]
        self._path = f"/repos/{self.name}"
        self.url: str = facts["html_url"]
        self.readers: str = f"group:{self.name}" if facts["private"] else "public"
        self._principals = frozenset({self.readers})
        self._branch = wanted.branch or facts.get("default_branch") or "HEAD"

    def scope(self, stream: str) -> str:
        """The scope of its files, issues, discussions, releases or wiki."""
        return f"{self.name}:{stream}"

    def has(self, feature: str) -> bool:
        """Whether it has `discussions` or a `wiki`; where GitHub does not say so, one has to look."""
        return self._facts.get(f"has_{feature}") is not False

    # --- files -----------------------------------------------------------------------------------

    def head(self) -> Head | None:
        """None when there is no commit yet."""
        commits = self._api.commits(f"{self._path}/commits", sha=self._branch, per_page=1)
        if not commits:
            return None
        return Head(commits[0]["sha"], commits[0]["commit"]["tree"]["sha"])

    def files(self, head: Head) -> Iterator[Record]:
        """The files of a commit. Raises `IncompleteTreeError` where one cannot know that these are all."""
        for entry in self._entries(head.tree, ""):
            path, size = entry["path"], entry.get("size") or 0
            if entry.get("mode") not in _FILE_MODES or not self._wanted.takes(path):
                continue
            if 0 < size <= self._wanted.max_bytes:
                yield self._file(path, entry["sha"], size, head.commit)

    def file(self, path: str) -> Record | Deletion:
        """One file as it is now."""
        found = self._api.find(f"{self._path}/contents/{quote(path)}", ref=self._branch)
        if not isinstance(found, Mapping) or found.get("type") != "file":
            return Deletion(f"{self.name}/blob/{path}")
        return self._file(path, found["sha"], found["size"], self._branch)

    def readme(self) -> Record | None:
        """The page that introduces it."""
        found = self._api.find(f"{self._path}/readme", ref=self._branch)
        if not found:
            return None
        return self._file(found["path"], found["sha"], found["size"], self._branch)

    def _entries(self, tree: str, folder: str) -> Iterator[Mapping[str, Any]]:
        """All at once, or folder by folder when that is too much for one answer."""
        found = self._api.get(f"{self._path}/git/trees/{tree}", recursive=1)
        if not found["truncated"]:
            yield from (_below(folder, entry) for entry in found["tree"])
            return
        found = self._api.get(f"{self._path}/git/trees/{tree}")
        if found["truncated"]:
            raise IncompleteTreeError(folder)
        for entry in found["tree"]:
            placed = _below(folder, entry)
            if entry["type"] == "tree":
                yield from self._entries(entry["sha"], placed["path"])
            else:
                yield placed

    def _file(self, path: str, sha: str, size: int, ref: str) -> Record:
        name = PurePosixPath(path).name
        return Record(
            external_id=f"{self.name}/blob/{path}",
            title=path,
            body=File(partial(self._opened, path, ref), name, size=size),
            version=sha,
            scope=self.scope("code"),
            url=f"{self._facts['html_url']}/blob/{quote(self._branch)}/{quote(path)}",
            breadcrumbs=(self.name, *PurePosixPath(path).parts[:-1]),
            metadata={"type": "file", "repository": self.name, "path": path},
            principals=self._principals,
        )

    @contextmanager
    def _opened(self, path: str, ref: str) -> Iterator[BinaryIO]:
        yield io.BytesIO(self._api.raw(f"{self._path}/contents/{quote(path)}", ref))

    # --- issues, pull requests, releases ---------------------------------------------------------

    def issues(self, since: str) -> Iterator[list[Mapping[str, Any]]]:
        """Pages of issues and pull requests, the longest untouched first. The next page is asked for by the
        time of the last one's end: what is touched meanwhile moves back and shifts no numbered page."""
        path, page, seen = f"{self._path}/issues", 1, set[int]()
        while True:
            params: dict[str, Any] = {"state": "all", "sort": "updated", "direction": "asc"}
            params |= {"since": since} if since else {}
            rows = self._api.get(path, **params, per_page=PAGE, page=page)
            new = [row for row in rows if row["id"] not in seen]
            seen = {row["id"] for row in rows} | (seen if page > 1 else set())
            yield new
            if len(rows) < PAGE:
                return
            last = rows[-1]["updated_at"]
            since, page = (since, page + 1) if last == since else (last, 1)

    def issue(self, number: str) -> Record | Deletion | None:
        """One issue or pull request as it is now; None when it has moved to another repository."""
        found = self._api.find(f"{self._path}/issues/{number}")
        if found is None:
            return Deletion(f"{self.name}/issues/{number}")
        moved = not found["html_url"].startswith(self._facts["html_url"] + "/")
        return None if moved else self.issue_record(found)

    def issue_record(self, row: Mapping[str, Any]) -> Record:
        """An issue or a pull request. Its comments are read when it has been touched."""
        number, is_pull = row["number"], "pull_request" in row
        facts = {
            "type": "pull_request" if is_pull else "issue",
            "repository": self.name,
            "number": number,
            "state": _state(row),
            "labels": [label if isinstance(label, str) else label.get("name") for label in row["labels"]],
            "assignees": [one["login"] for one in row.get("assignees") or ()],
            "milestone": (row.get("milestone") or {}).get("title"),
        }  # fmt: skip
        return Record(
            external_id=f"{self.name}/issues/{number}",
            title=f"{row['title']} (#{number})",
            body=File(partial(self._discussion, row), f"{number}.md", "text/markdown"),
            version=row["updated_at"],
            scope=self.scope("issues"),
            url=row["html_url"],
            author=_login(row),
            breadcrumbs=(self.name, "Pull requests" if is_pull else "Issues"),
            created_at=moment(row["created_at"]),
            updated_at=moment(row["updated_at"]),
            metadata=facts,
            principals=self._principals,
        )

    def releases(self) -> Iterator[Event]:
        """All that are published."""
        for row in self._api.rows(f"{self._path}/releases"):
            if row["draft"]:
                continue
            try:
                yield self._release(row)
            except (KeyError, TypeError):
                yield Failure(
                    f"{self.name}/releases/{row.get('id')}",
                    "GitHub describes this release incompletely.",
                    self.scope("releases"),
                )

    def _release(self, row: Mapping[str, Any]) -> Record:
        return Record(
            external_id=f"{self.name}/releases/{row['id']}",
            title=f"{self.name} {row['name'] or row['tag_name']}",
            body=Text(row["body"] or ""),
            scope=self.scope("releases"),
            url=row["html_url"],
            author=_login(row, "author"),
            breadcrumbs=(self.name, "Releases"),
            created_at=moment(row["created_at"]),
            updated_at=moment(row["published_at"]),
            metadata={"type": "release", "repository": self.name, "tag": row["tag_name"]},
            principals=self._principals,
        )

    @contextmanager
    def _discussion(self, row: Mapping[str, Any]) -> Iterator[BinaryIO]:
        comments: list[Mapping[str, Any]] = []
        if row["comments"]:
            comments += self._api.rows(f"{self._path}/issues/{row['number']}/comments")
        if "pull_request" in row:
            comments += self._api.rows(f"{self._path}/pulls/{row['number']}/comments")
        comments.sort(key=lambda one: str(one["created_at"]))
        parts = [f"# {row['title']}", row["body"] or "", *map(_comment, comments)]
        yield io.BytesIO("\n\n".join(part for part in parts if part).encode())


def moment(text: str | None) -> datetime | None:
    """A time as GitHub writes it."""
    return datetime.fromisoformat(text) if text else None


def _comment(row: Mapping[str, Any]) -> str:
    place = f" on `{row['path']}`" if row.get("path") else ""
    return f"## {_login(row)}{place}, {row['created_at'][:10]}\n\n{row['body'] or ''}"


def _login(row: Mapping[str, Any], field: str = "user") -> str:
    return str((row.get(field) or {}).get("login") or "ghost")


def _state(row: Mapping[str, Any]) -> str:
    merged = (row.get("pull_request") or {}).get("merged_at")
    return "merged" if merged else str(row["state"])


def _below(folder: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "path": f"{folder}/{entry['path']}".lstrip("/")}


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatch(path, pattern) or fnmatch(name, pattern) for pattern in patterns)
