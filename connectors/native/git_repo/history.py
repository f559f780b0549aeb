"""What git says of trees and commits, as values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from connectors.native.git_repo.command import Git

_HEADER = re.compile(rb"\x02[0-9a-f]{40,64}")
_FORMAT = "%x02%H%x00%ct%x00%an%x00%s%x00%b%x00"
_REGULAR = frozenset({b"100644", b"100755"})


@dataclass(frozen=True, slots=True)
class Change:
    """A path that one commit has and the other has not, or otherwise. Paths are bytes to git; what is not
    UTF-8 in them is shown, not lost."""

    path: str
    blob: str
    is_file: bool  # neither gone nor a link nor a submodule
    is_binary: bool
    size: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with the paths in which it differs from its first parent."""

    sha: str
    moment: datetime
    author: str
    subject: str
    body: str
    paths: tuple[str, ...]


def changes_between(git: Git, old: str | None, new: str) -> list[Change]:
    """Each path that differs; without `old` each path there is."""
    before = old or git.read("hash-object", "-t", "tree", "--stdin").decode().strip()
    output = git.read(
        "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-abbrev",
        "--no-ext-diff", "--no-textconv", before, new,
    )  # fmt: skip
    parts = output.split(b"\0")
    raw: list[tuple[bytes, bytes, bytes]] = []  # mode, blob, path
    position = 0
    while position < len(parts) and parts[position].startswith(b":"):
        _, mode, _, blob, _ = parts[position].split(b" ")
        raw.append((mode, blob, parts[position + 1]))
        position += 2
    counts = (part.split(b"\t", 2) for part in parts[position:] if part)
    binary = {path for added, _, path in counts if added == b"-"}
    sizes = _sizes(git, {blob for mode, blob, _ in raw if mode in _REGULAR})
    return [
        Change(_shown(path), blob.decode(), mode in _REGULAR, path in binary, sizes.get(blob, 0))
        for mode, blob, path in raw
    ]


def commits_between(git: Git, old: str | None, new: str, most: int) -> Iterator[Commit]:
    """The newest first, merges by what they brought."""
    output = git.read(
        "log", "-z", "--first-parent", "-m", "--name-only", "--no-renames", f"--max-count={most}",
        f"--format={_FORMAT}", "--end-of-options", f"{old}..{new}" if old else new, "--",
    )  # fmt: skip
    # The oldest commit of a shallow history seems to have brought everything.
    shallow = git.repository / "shallow"
    edge = set(shallow.read_text().split()) if shallow.exists() else set()
    parts = output.split(b"\0")
    starts = [number for number, part in enumerate(parts) if _HEADER.fullmatch(part)]
    for start, end in zip(starts, [*starts[1:], len(parts)], strict=True):
        sha, moment, author, subject, body = (part.decode(errors="replace") for part in parts[start : start + 5])  # fmt: skip
        paths = [part.removeprefix(b"\n") for part in parts[start + 5 : end]]
        yield Commit(
            sha[1:],
            datetime.fromtimestamp(int(moment), UTC),
            author,
            subject,
            body.strip(),
            () if sha[1:] in edge else tuple(_shown(path) for path in paths if path),
        )


def _sizes(git: Git, blobs: set[bytes]) -> dict[bytes, int]:
    asked = b"".join(blob + b"\n" for blob in sorted(blobs))
    if not asked:
        return {}
    lines = git.read("cat-file", "--batch-check=%(objectname) %(objectsize)", given=asked)
    rows = (line.split(b" ") for line in lines.splitlines())
    return {blob: int(size) for blob, size in rows if size.isdigit()}


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
