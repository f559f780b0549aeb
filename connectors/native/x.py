"""Posts of X: the home timeline, an account's own, mentions, bookmarks, lists, and other accounts."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal

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
    OAuthEndpoints,
    Record,
    Settings,
    Text,
    oauth,
    token_auth,
)
from connectors.native.paging import Page, follow_pages

_PAGE = 100
_TITLE = 90
_FIELDS = {  # the author comes by the expansion
    "post.fields": "conversation_id,created_at,entities,lang,note_post,public_metrics",
    "expansions": "author_id",
    "user.fields": "name,username",
}
# Those that can be asked for what is newer than a post; in lists it is noticed while reading.
_SINCE = frozenset({"timeline", "posts", "mentions", "account"})
_PATHS = {
    "timeline": "2/users/{id}/timelines/reverse_chronological",
    "posts": "2/users/{id}/tweets",
    "mentions": "2/users/{id}/mentions",
    "bookmarks": "2/users/{id}/bookmarks",
    "list": "2/lists/{id}/tweets",
    "account": "2/users/{id}/tweets",
}

Json = Mapping[str, Any]
_Signed = tuple[Json, Json]


class XConfig(Settings):
    """Which streams of posts."""

    streams: list[Literal["timeline", "posts", "mentions", "bookmarks"]] = Field(
        default=["posts", "mentions", "bookmarks"],
        title="Streams",
        description="Of the account that has signed in.",
    )
    list_ids: list[Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]] = Field(
        default=[], title="Lists", description="Their numbers."
    )
    accounts: list[Annotated[str, Field(pattern=r"^@?[A-Za-z0-9_]{1,15}$")]] = Field(
        default=[], title="Other accounts", description="Names whose posts to read."
    )
    max_pages: int = Field(
        default=2, ge=1, le=32, title="Pages of a stream in each sync", description="Of 100 posts."
    )


class XConnector(Connector[XConfig]):
    """Reads the newest posts of each stream, down to the newest one that it knows."""

    base_url = "https://api.x.com"
    spec = ConnectorSpec(
        kind="x",
        name="X",
        description="Posts of timelines, mentions, bookmarks, lists and accounts.",
        category=Category.WEB,
        config=XConfig,
        auth=(
            oauth(
                OAuthEndpoints(
                    "https://x.com/i/oauth2/authorize",
                    "https://api.x.com/2/oauth2/token",
                    ("tweet.read", "users.read", "bookmark.read", "list.read", "offline.access"),
                ),
                "Sign in with X",
            ),
            token_auth("User access token", hint="OAuth 2.0, with tweet.read and users.read"),
        ),
        capabilities=frozenset({Capability.INCREMENTAL}),
        documentation_url="https://docs.x.com/x-api",
        sync_every_minutes=120,
    )

    def check(self) -> str:
        """The account."""
        return f"@{self._me['username']}"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Stream by stream; one that cannot be read is a warning."""
        latest: dict[str, str] = dict(cursor.get("latest", {}))
        for kind, name in self._streams():
            stream = f"{kind}:{name}" if name else kind
            try:
                yield from self._read(kind, name, stream, latest)
            except RejectedError as error:
                yield Notice(f"{stream} could not be read. {error.message}")
            yield Checkpoint({"latest": dict(latest)})

    def _streams(self) -> Iterator[tuple[str, str]]:
        yield from ((kind, "") for kind in dict.fromkeys(self.config.streams))
        yield from (("list", number) for number in dict.fromkeys(self.config.list_ids))
        yield from (("account", name.lstrip("@")) for name in dict.fromkeys(self.config.accounts))

    def _read(self, kind: str, name: str, stream: str, latest: dict[str, str]) -> Iterator[Event]:
        """The newest pages. What lies between them and the newest known post is left out, and said to be."""
        known = int(latest.get(stream, 0))
        newest, oldest, is_cut = known, 0, False
        for page, is_last in self._pages(kind, name, known):
            ids = [int(post["id"]) for post, _ in page]
            yield from (
                _record(stream, post, author) for post, author in page
                if kind == "bookmarks" or int(post["id"]) > known
            )  # fmt: skip
            is_cut = not is_last
            newest, oldest = max([newest, *ids]), min(ids, default=oldest)
            if kind == "list" and oldest <= known:
                break
        if kind != "bookmarks":
            latest[stream] = str(newest)
            if known and oldest > known and is_cut:
                yield Notice(
                    f"{stream} had more new posts than are read in a sync; older ones were left out."
                )

    def _pages(self, kind: str, name: str, known: int) -> Iterator[tuple[list[_Signed], bool]]:
        """Posts with their authors, and whether nothing comes after them."""
        path = _PATHS[kind].format(id=self._subject(kind, name))
        since = {"since_id": str(known)} if known and kind in _SINCE else {}

        def fetch(cursor: str) -> Page[tuple[list[_Signed], bool]]:
            token = {"pagination_token": cursor} if cursor else {}
            params = {"max_results": _PAGE, **_FIELDS, **since, **token}
            answer: Json = self._http.get_json(path, params)
            after = str((answer.get("meta") or {}).get("next_token") or "")
            return [(_with_authors(answer), not after)], after

        for found in follow_pages(fetch, most_pages=self.config.max_pages):
            yield from found

    def _subject(self, kind: str, name: str) -> str:
        if kind == "list":
            return name
        if kind == "account":
            return str(self._data(f"2/users/by/username/{name}")["id"])
        return str(self._me["id"])

    def _data(self, path: str) -> Json:
        """One thing. What is missing is answered with status 200 and errors."""
        found: Json | None = self._http.get_json(path).get("data")
        if not found:
            raise RejectedError(f"X does not have {path.rpartition('/')[2]}, or does not show it.")
        return found

    @cached_property
    def _me(self) -> Json:
        return self._data("2/users/me")

    @cached_property
    def _http(self) -> HttpClient:
        return self.context.client(self.base_url)


def _with_authors(answer: Json) -> list[_Signed]:
    users = {user["id"]: user for user in (answer.get("includes") or {}).get("users") or ()}
    return [(post, users.get(post.get("author_id"), {})) for post in answer.get("data") or ()]


def _record(stream: str, post: Json, author: Json) -> Record:
    text, username = _text(post), str(author.get("username") or "")
    line = " ".join(text.split())
    title = line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"
    created = post.get("created_at")
    return Record(
        external_id=str(post["id"]),
        title=f"@{username}: {title}" if username else title,
        body=Text(text),
        url=f"https://x.com/{username or 'i'}/status/{post['id']}",
        author=str(author.get("name") or username),
        created_at=datetime.fromisoformat(created) if created else None,
        metadata={
            "stream": stream,
            "username": username,
            "lang": post.get("lang"),
            "conversation_id": post.get("conversation_id"),
            **(post.get("public_metrics") or {}),
        },
    )


def _text(post: Json) -> str:
    """The whole text of a post, a long one's too, with the addresses that its short links stand for."""
    note: Json = post.get("note_post") or post.get("note_tweet") or {}
    text = str(note.get("text") or post.get("text") or "")
    urls: Sequence[Json] = [
        url
        for entities in (post.get("entities"), note.get("entities"))
        for url in (entities or {}).get("urls") or ()
    ]
    for url in urls:
        target = url.get("unwound_url") or url.get("expanded_url")
        if url.get("url") and target:
            text = text.replace(str(url["url"]), str(target))
    return html.unescape(text)
