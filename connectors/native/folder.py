"""A folder of this machine, or one mounted into it."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from pydantic import Field

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    Browsable,
    Capability,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    Failure,
    File,
    Node,
    Record,
    Refetch,
    Settings,
)

_PAGE = 200


class FolderConfig(Settings):
    """Which folder, and which of its files."""

    path: str = Field(title="Folder", description="Path of the folder on the server.")
    include: list[str] = Field(
        default=[],
        title="Only these",
        description="Patterns such as *.pdf or handbook/*; empty: everything.",
    )
    exclude: list[str] = Field(
        default=[], title="Not these", description="Patterns such as *.tmp or archive/*."
    )
    hidden: bool = Field(
        default=False, title="Hidden files too", description="Names that begin with a dot."
    )


class FolderConnector(Connector[FolderConfig], Browsable, Refetch):
    """Lists the whole folder each time, which is cheap; files are read when time or size has changed."""

    spec = ConnectorSpec(
        kind="folder",
        name="Folder",
        description="Files in a folder of the server or a mounted share.",
        category="Files",
        config=FolderConfig,
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        sync_every_minutes=15,
    )

    def check(self) -> str:
        """The folder, when it can be listed."""
        root = self._root()
        with os.scandir(root) as entries:
            count = sum(1 for _ in entries)
        return f"{root}: {count} entries"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every file. Without a complete listing nothing counts as deleted."""
        root = self._root()
        failures: list[Failure] = []
        for number, path in enumerate(self._files(root, failures), start=1):
            yield self._record(root, path)
            if number % _PAGE == 0:
                yield Checkpoint({})
        yield from failures
        yield Checkpoint({})
        if not failures:
            yield Complete()

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files."""
        root = self._root()
        for external_id in external_ids:
            path = root / external_id
            if _is_inside(path, root) and path.is_file():
                yield self._record(root, path)

    def browse(self, parent: str) -> list[Node]:
        """Folders in a folder."""
        root = self._root()
        place = root / parent
        if not _is_inside(place, root):
            raise InvalidInputError("That place lies outside the folder.")
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return [Node(f"{parent}/{name}".lstrip("/"), name, has_children=True) for name in names]

    def _root(self) -> Path:
        root = Path(self.config.path).expanduser().resolve()
        allowed = [Path(folder).resolve() for folder in settings.GROUNDWORK_LOCAL_FOLDERS]
        if not any(root == folder or folder in root.parents for folder in allowed):
            raise InvalidInputError(
                f"{root} may not be connected. The operator names the folders that may be in "
                "GROUNDWORK_LOCAL_FOLDERS."
            )
        if not root.is_dir():
            # Perhaps a share that is not mounted: nothing is taken for deleted.
            raise RejectedError(f"{root} is not there, or is no folder.")
        return root

    def _files(self, folder: Path, failures: list[Failure]) -> Iterator[Path]:
        root = self._root()
        stack = [folder]
        while stack:
            self.context.pause(0)
            place = stack.pop()
            try:
                with os.scandir(place) as found:
                    entries = sorted(found, key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                name = str(place.relative_to(root))
                failures.append(Failure(name, f"Cannot be listed: {error.strerror}."))
                continue
            files = []
            for entry in entries:
                if entry.name.startswith(".") and not self.config.hidden:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    stack.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    files.append(Path(entry.path))
            yield from (path for path in reversed(files) if self._is_wanted(path, root))

    def _is_wanted(self, path: Path, root: Path) -> bool:
        name = str(path.relative_to(root))
        included = not self.config.include or _matches(name, self.config.include)
        return included and not _matches(name, self.config.exclude)

    def _record(self, root: Path, path: Path) -> Record | Failure:
        # File names are bytes; what is not UTF-8 in them is shown, not lost.
        name = os.fsencode(path.relative_to(root)).decode("utf-8", "backslashreplace")
        try:
            facts = path.stat()
        except OSError as error:
            return Failure(name, f"Cannot be read: {error.strerror}.")
        return Record(
            external_id=name,
            title=path.stem.encode("utf-8", "backslashreplace").decode(),
            body=File(partial(_opened, path), Path(name).name, size=facts.st_size),
            version=f"{facts.st_mtime_ns}-{facts.st_size}",
            breadcrumbs=Path(name).parts[:-1],
            updated_at=datetime.fromtimestamp(facts.st_mtime, UTC),
            metadata={"path": name},
        )


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    try:
        # A link put in the place of the file since it was listed is not followed out of the folder.
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
    except OSError as error:
        raise RejectedError(f"{path.name} cannot be read: {error.strerror}.") from error


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(Path(name).name, pattern)
        for pattern in patterns
    )


def _is_inside(path: Path, root: Path) -> bool:
    resolved = path.resolve()
    return resolved == root or root in resolved.parents
