"""A folder of this machine, or one mounted into it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pydantic import Field

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Deletion,
    Event,
    Failure,
    File,
    Node,
    Notice,
    Record,
    Refetch,
    Settings,
)
from connectors.local_folders import allowed_folder
from connectors.patterns import is_wanted

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
    """Lists the whole folder each time, which is cheap; files are read when time or size has changed.

    Links are not followed. Names are bytes to the system: what is not UTF-8 in them is shown, not lost.
    """

    spec = ConnectorSpec(
        kind="folder",
        name="Folder",
        description="Files in a folder of the server or a mounted share.",
        category=Category.FILES,
        config=FolderConfig,
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        sync_every_minutes=1,  # a listing is cheap, and so a change is seen at once
    )

    def check(self) -> str:
        """The folder, when it can be listed."""
        root = self._root()
        return f"{root}: {len(_entries(root))} entries"

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
        if not _entries(root):
            yield Notice(f"{root} is empty. In case a share is not mounted, nothing was deleted.")
        elif not failures:
            yield Complete()

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single files, out of a listing where their names are not plain."""
        root = self._root()
        missing = set(external_ids)
        failures: list[Failure] = []
        for path in self._files(root, failures):
            if (name := _shown(path.relative_to(root))) in missing:
                missing.remove(name)
                yield self._record(root, path)
        unread = {failure.external_id for failure in failures}
        for name in sorted(missing):
            if not unread:
                yield Deletion(name)
            elif name not in unread:
                yield Failure(name, "A folder could not be listed; it may be in there.")
        yield from failures

    def browse(self, parent: str) -> list[Node]:
        """Folders in a folder."""
        root = self._root()
        place = root / parent
        try:
            if not _is_inside(place, root):
                raise InvalidInputError("That place lies outside the folder.")
            names = [entry.name for entry in _entries(place) if entry.is_dir(follow_symlinks=False)]
        except (OSError, ValueError) as error:
            raise InvalidInputError("That place cannot be listed.") from error
        return [
            Node(_shown(Path(parent, name)), _shown(Path(name)), has_children=True)
            for name in sorted(names)
        ]

    def _root(self) -> Path:
        root = allowed_folder(self.config.path)
        if not root.is_dir():
            # Perhaps a share that is not mounted: nothing is taken for deleted.
            raise RejectedError(f"{root} is not there, or is no folder.")
        try:
            _entries(root)
        except OSError as error:
            raise RejectedError(f"{root} cannot be listed: {error.strerror}.") from error
        return root

    def _files(self, root: Path, failures: list[Failure]) -> Iterator[Path]:
        """Those that are wanted, folder by folder in the order of names."""
        stack = [root]
        while stack:
            self.context.pause(0)
            place = stack.pop()
            try:
                entries = _entries(place)
            except OSError as error:
                name = _shown(place.relative_to(root))
                failures.append(Failure(name, f"Cannot be listed: {error.strerror}."))
                continue
            seen = [one for one in entries if self.config.hidden or not one.name.startswith(".")]
            folders = [Path(one.path) for one in seen if one.is_dir(follow_symlinks=False)]
            stack.extend(reversed(folders))
            for entry in seen:
                path = Path(entry.path)
                if entry.is_file(follow_symlinks=False) and self._is_wanted(path, root):
                    yield path

    def _is_wanted(self, path: Path, root: Path) -> bool:
        name = _shown(path.relative_to(root))
        return is_wanted(name, self.config.include, self.config.exclude)

    def _record(self, root: Path, path: Path) -> Record | Failure:
        way = path.relative_to(root)
        name = _shown(way)
        try:
            facts = path.lstat()
        except OSError as error:
            return Failure(name, f"Cannot be read: {error.strerror}.")
        return Record(
            external_id=name,
            title=_shown(Path(path.stem)),
            body=File(partial(_opened, root, way), _shown(Path(path.name)), size=facts.st_size),
            version=f"{facts.st_mtime_ns}-{facts.st_size}",
            breadcrumbs=tuple(_shown(Path(part)) for part in way.parts[:-1]),
            updated_at=datetime.fromtimestamp(facts.st_mtime, UTC),
            metadata={"path": name},
        )


def _opened(root: Path, way: Path) -> AbstractContextManager[BinaryIO]:
    try:
        descriptor = _descriptor(root, way)
    except OSError as error:
        raise RejectedError(f"{_shown(way)} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RejectedError(f"{_shown(way)} is no file any more.")
    return os.fdopen(descriptor, "rb")


def _descriptor(root: Path, way: Path) -> int:
    """Opened step by step from the root: a link put in the place of a folder or of the file since they were
    listed is not followed. Without O_NONBLOCK a pipe that nobody writes to would hold up the run."""
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in way.parts:
        above = place
        try:
            place = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
        finally:
            os.close(above)
    return place


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def _shown(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _is_inside(path: Path, root: Path) -> bool:
    resolved = path.resolve()
    return resolved == root or root in resolved.parents
