"""The wiki of a repository, which is a git repository beside it and is read as one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import requests
from pydantic import SecretStr

from config.errors import CredentialsError, InvalidInputError, RejectedError, TransientError
from connectors.base import Checkpoint, Complete, Context, Deletion, Event, Record
from connectors.native.git_repo.command import NothingThereError
from connectors.native.git_repo.connector import GitRepoConnector
from connectors.native.git_repo.settings import GitRepoConfig, GitToken
from connectors.native.github.repository import Repository

# https://github.com/github/markup#markups
_MARKUPS = ["md", "mkdn", "mdwn", "mdown", "markdown", "textile", "rdoc", "org", "creole", "mediawiki", "wiki", "rst", "asciidoc", "adoc", "asc", "pod"]  # fmt: skip
_AROUND_PAGES = ["_Sidebar.*", "_Footer.*", "_Header.*"]


class Wiki:
    """That of one repository. One that nobody has written to is not there."""

    def __init__(self, repository: Repository, context: Context) -> None:
        self._repository = repository
        config = GitRepoConfig(
            repository=f"{repository.url}.wiki.git",
            include=[f"*.{markup}" for markup in _MARKUPS],
            exclude=_AROUND_PAGES,
        )
        own = replace(context, cache=_folder(context, repository.name))
        self._source = GitRepoConnector(config, GitToken(token=_token(context)), own)

    def changes(self, position: dict[str, str]) -> Iterator[Event | None]:
        """What differs from the commit of the position, which moves; None where it may be kept."""
        branch, _, commit = position.get("wiki", "").partition(" ")
        with _contained():
            try:
                for event in self._source.pull({"commits": {branch: commit}} if commit else {}):
                    if isinstance(event, Checkpoint):
                        for known in event.cursor.get("commits", {}).items():
                            position["wiki"] = " ".join(known)
                        yield None
                    else:
                        yield self._placed(event)
            except NothingThereError:
                return

    def find(self, path: str) -> Record | Deletion:
        """One page as it is now."""
        wanted = f"{self._repository.name}/wiki/{path}"
        with _contained():
            for event in map(self._placed, self._source.pull({})):
                if isinstance(event, Record) and event.external_id == wanted:
                    return event
        return Deletion(wanted)

    def _placed(self, event: Event) -> Event:
        match event:
            case Record():
                return self._page(event)
            case Deletion(external_id=known):
                return Deletion(self._id(known))
            case Complete():
                return Complete(self._repository.scope("wiki"))
            case _:
                return event

    def _page(self, file: Record) -> Record:
        path, name = PurePosixPath(file.metadata["path"]), self._repository.name
        place = "" if path.stem == "Home" else f"/{quote(path.stem)}"
        return replace(
            file,
            external_id=self._id(file.external_id),
            title=path.stem.replace("-", " "),
            scope=self._repository.scope("wiki"),
            url=f"{self._repository.url}/wiki{place}",
            breadcrumbs=(name, "Wiki", *path.parts[:-1]),
            metadata={"type": "wiki_page", "repository": name, "path": str(path)},
            principals=frozenset({self._repository.readers}),
        )

    def _id(self, known: str) -> str:
        return f"{self._repository.name}/wiki/{known.partition(':')[2]}"


def forget_wiki(context: Context, name: str) -> None:
    """Remove what is kept of the wiki of a repository that is no longer read."""
    shutil.rmtree(_folder(context, name), ignore_errors=True)


def _token(context: Context) -> SecretStr:
    """What requests are proven with at this moment: a sign-in is renewed now and then."""
    asked = requests.Request("GET", "https://github.com/", auth=context.auth).prepare()
    return SecretStr(str(asked.headers.get("Authorization", "")).removeprefix("Bearer "))


def _folder(context: Context, name: str) -> Path:
    return context.cache / f"wiki-{sha256(name.encode()).hexdigest()[:16]}"


@contextmanager
def _contained() -> Iterator[None]:
    """What one wiki refuses says nothing of the account or of the other repositories."""
    try:
        yield
    except (CredentialsError, InvalidInputError, TransientError) as error:
        raise RejectedError(f"The wiki: {error.message}") from error
