"""Pages and databases of a Notion workspace, of the API's generation with data sources.

The listing is cheap and tells when a page was last edited; its blocks are read only when that is new. So are its
comments: a comment alone is no edit, and is noticed with the next one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, BinaryIO

from pydantic import Field

from config.errors import RejectedError
from config.http import HttpClient
from connectors.base import (
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
    LiveHit,
    LiveSearch,
    Notice,
    OAuthEndpoints,
    Record,
    Refetch,
    Settings,
    oauth,
    token_auth,
)
from connectors.native.notion.rendering import (
    Json,
    properties_of,
    render_blocks,
    render_text,
    shown,
    title_of,
)
from connectors.native.paging import Page, follow_pages

_VERSION = "2025-09-03"  # https://developers.notion.com/docs/upgrade-guide-2025-09-03
_PAGE = 100
_OVERLAP = timedelta(hours=1)  # the search is behind the edits, and times are rounded to the minute
_DEEPEST = 20  # of places above a page
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_PLACES = {
    "page_id": "pages",
    "data_source_id": "data_sources",
    "database_id": "databases",
    "block_id": "blocks",
}


class NotionConfig(Settings):
    """Which pages."""

    below: list[str] = Field(
        default=[],
        title="Only below these",
        description="Pages or databases, as ids or links; empty: all that the integration may see.",
    )
    databases: bool = Field(
        default=True,
        title="Databases themselves",
        description="Their titles, descriptions and columns; rows are pages and come in any case.",
    )
    comments: bool = Field(
        default=False,
        title="Comments",
        description="Below a page's text. A new one is noticed with the next edit of its page.",
    )


class NotionConnector(Connector[NotionConfig], LiveSearch, Refetch):
    """Reads what a person has shared with the integration; Notion does not say who else may read it."""

    base_url = "https://api.notion.com"
    spec = ConnectorSpec(
        kind="notion",
        name="Notion",
        description="Pages, databases and their rows, with comments.",
        category=Category.DOCUMENTS,
        config=NotionConfig,
        auth=(
            token_auth("Integration secret", hint="ntn_…, of an internal integration"),
            oauth(
                OAuthEndpoints(
                    "https://api.notion.com/v1/oauth/authorize",
                    "https://api.notion.com/v1/oauth/token",
                    pkce=False,
                    extra={"owner": "user"},
                ),
                "Sign in with Notion",
            ),
        ),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS}),
        documentation_url="https://developers.notion.com",
        rate_limit="3/second",
    )

    def check(self) -> str:
        """The integration and its workspace."""
        me = self._http.get_json("v1/users/me")
        workspace = (me.get("bot") or {}).get("workspace_name")
        return f"{workspace}: {me.get('name')}" if workspace else str(me.get("name"))

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Everything, or what was edited since."""
        since = cursor.get("edited")
        if since is None:
            yield from self._pull_all()
            return
        edge = _moment(since) - _OVERLAP
        newest = str(since)
        for page in self._search({}):
            for thing in page:
                if _moment(thing["last_edited_time"]) < edge:
                    yield Checkpoint({"edited": newest})
                    return
                newest = max(newest, str(thing["last_edited_time"]))
                yield from self._events(thing)
            yield Checkpoint({"edited": since})
        yield Checkpoint({"edited": newest})

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single pages and data sources."""
        for external_id in external_ids:
            for place in ("pages", "data_sources"):
                thing = self._get(f"v1/{place}/{external_id}")
                if thing:
                    yield from self._events(thing)
                    break
            else:
                yield Deletion(external_id)

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Notion's own search, which is by title."""
        answer = self._http.post_json(
            "v1/search", {"query": query, "page_size": min(max(limit, 1), _PAGE)}
        )
        return [self._hit(thing) for thing in answer["results"] if self._is_wanted(thing)][:limit]

    # --- listing -------------------------------------------------------------------------------

    def _pull_all(self) -> Iterator[Event]:
        """Search is not promised to be exhaustive, so rows are listed by their data sources as well."""
        newest, met, sources, is_whole = "", set[str](), [], True
        for page in self._search({}):
            for thing in page:
                newest = max(newest, str(thing["last_edited_time"]))
                met.add(str(thing["id"]))
                if thing.get("object") == "data_source":
                    sources.append(str(thing["id"]))
                yield from self._events(thing)
            yield Checkpoint({})
        for source in sources:
            try:
                for page in self._rows(source):
                    fresh = [thing for thing in page if str(thing["id"]) not in met]
                    met |= {str(thing["id"]) for thing in fresh}
                    for thing in fresh:
                        yield from self._events(thing)
                    yield Checkpoint({})
            except RejectedError as error:
                is_whole = False
                yield Notice(f"The rows of {source} could not be listed. {error.message}")
        yield Checkpoint({"edited": newest} if newest else {})
        if is_whole:
            yield Complete()

    def _search(self, body: Json) -> Iterator[list[Json]]:
        sort = {"direction": "descending", "timestamp": "last_edited_time"}
        return self._post_pages("v1/search", {**body, "sort": sort})

    def _rows(self, source: str) -> Iterator[list[Json]]:
        return self._post_pages(f"v1/data_sources/{source}/query", {})

    def _post_pages(self, path: str, body: Json) -> Iterator[list[Json]]:
        def fetch(cursor: str) -> Page[Json]:
            start = {"start_cursor": cursor} if cursor else {}
            return _page_of(self._http.post_json(path, {**body, "page_size": _PAGE, **start}))

        return follow_pages(fetch)

    def _get_pages(self, path: str, **params: Any) -> Iterator[list[Json]]:
        def fetch(cursor: str) -> Page[Json]:
            start = {"start_cursor": cursor} if cursor else {}
            return _page_of(self._http.get_json(path, {**params, "page_size": _PAGE, **start}))

        return follow_pages(fetch)

    # --- one page ------------------------------------------------------------------------------

    def _events(self, thing: Json) -> Iterator[Event]:
        self._places[str(thing["id"])] = _outline(thing)
        if thing.get("archived") or thing.get("in_trash") or thing.get("is_archived"):
            yield Deletion(str(thing["id"]))
        elif self._is_wanted(thing):
            yield self._record(thing)

    def _is_wanted(self, thing: Json) -> bool:
        if thing.get("object") != "page" and not self.config.databases:
            return False
        if not self.config.below:
            return True
        wanted = {
            found.group().replace("-", "").lower()
            for found in map(_last_id, self.config.below)
            if found
        }
        above = {str(place["id"]).replace("-", "") for place in (thing, *self._above(thing))}
        return bool(wanted & above)

    def _record(self, thing: Json) -> Record:
        title = title_of(thing) or "Untitled"
        author = self._people.get(str((thing.get("created_by") or {}).get("id")), {})
        editor = self._people.get(str((thing.get("last_edited_by") or {}).get("id")), {})
        people = {"author_email": _email(author), "edited_by": str(editor.get("name") or "")}
        is_page = thing.get("object") == "page"
        facts = {
            **(properties_of(thing) if is_page else {}),
            "object": thing.get("object"),
            **people,
        }
        return Record(
            external_id=str(thing["id"]),
            title=title,
            body=File(partial(self._opened, thing), f"{title[:100]}.md", "text/markdown"),
            version=f"{thing['last_edited_time']}{'+comments' if self.config.comments else ''}",
            url=str(
                thing.get("url") or f"https://www.notion.so/{str(thing['id']).replace('-', '')}"
            ),
            author=str(author.get("name") or ""),
            breadcrumbs=[
                title_of(place) for place in reversed(self._above(thing)) if title_of(place)
            ],
            created_at=_moment(thing["created_time"]),
            updated_at=_moment(thing["last_edited_time"]),
            metadata={name: value for name, value in facts.items() if value not in (None, "")},
        )

    @contextmanager
    def _opened(self, thing: Json) -> Iterator[BinaryIO]:
        parts = [f"# {title_of(thing) or 'Untitled'}"]
        if thing.get("object") == "page":
            found = properties_of(thing).items()
            parts.append("\n".join(f"- **{name}**: {shown(value)}" for name, value in found))
            parts.append(render_blocks(str(thing["id"]), self._children))
            parts.append(self._comments(str(thing["id"])) if self.config.comments else "")
        else:
            parts.append(render_text(thing.get("description")))
            columns = (thing.get("properties") or {}).items()
            parts.append("\n".join(f"- {name}: {column.get('type')}" for name, column in columns))
        yield io.BytesIO("\n\n".join(part for part in parts if part).encode())

    def _children(self, block: str) -> Iterator[Json]:
        for page in self._get_pages(f"v1/blocks/{block}/children"):
            yield from page

    def _comments(self, page: str) -> str:
        found = [one for some in self._get_pages("v1/comments", block_id=page) for one in some]
        lines = [
            f"- **{self._people.get(str((one.get('created_by') or {}).get('id')), {}).get('name') or 'Someone'}** "
            f"({one['created_time'][:10]}): {render_text(one.get('rich_text'))}"
            for one in found
        ]
        return "\n".join(["## Comments", "", *lines]) if lines else ""

    def _hit(self, thing: Json) -> LiveHit:
        facts = properties_of(thing) if thing.get("object") == "page" else {}
        title = title_of(thing) or "Untitled"
        return LiveHit(
            external_id=str(thing["id"]),
            title=title,
            text="\n".join([title, *(f"{name}: {shown(value)}" for name, value in facts.items())]),
            url=str(thing.get("url") or ""),
            created_at=_moment(thing["created_time"]),
            updated_at=_moment(thing["last_edited_time"]),
            metadata=facts,
        )

    # --- places and people ---------------------------------------------------------------------

    def _above(self, thing: Json) -> list[Json]:
        """The places that a thing lies in, the nearest first; as far as the integration sees them."""
        found: list[Json] = []
        while len(found) < _DEEPEST:
            parent = thing.get("parent") or {}
            kind = str(parent.get("type"))
            place = self._place(kind, str(parent.get(kind))) if kind in _PLACES else {}
            if not place or any(place.get("id") == one.get("id") for one in found):
                return found
            found.append(place)
            thing = place
        return found

    def _place(self, kind: str, place_id: str) -> Json:
        if place_id not in self._places:
            self._places[place_id] = _outline(self._get(f"v1/{_PLACES[kind]}/{place_id}"))
        return self._places[place_id]

    def _get(self, path: str) -> Json:
        """One thing; empty when it is not there, or not shared with the integration."""
        try:
            found: Json = self._http.get_json(path)
        except RejectedError as error:
            if error.status in {400, 403, 404}:
                return {}
            raise
        return found

    @cached_property
    def _places(self) -> dict[str, Json]:
        return {}

    @cached_property
    def _people(self) -> Mapping[str, Json]:
        """By their ids; none when the integration may not see people."""
        try:
            return {str(user["id"]): user for page in self._get_pages("v1/users") for user in page}
        except RejectedError:
            return {}

    @cached_property
    def _http(self) -> HttpClient:
        return self.context.client(self.base_url, headers={"Notion-Version": _VERSION})


def _outline(thing: Json) -> Json:
    """What is kept of a place: enough for the breadcrumbs of what lies in it."""
    if not thing:
        return {}
    title = [{"plain_text": title_of(thing)}]
    return {"id": thing["id"], "parent": thing.get("parent"), "title": title}


def _page_of(answer: Json) -> Page[Json]:
    after = answer.get("next_cursor") if answer.get("has_more") else ""
    return list(answer.get("results") or ()), str(after or "")


def _last_id(text: str) -> re.Match[str] | None:
    """The id in a link, which comes after the title."""
    return next(iter(list(_UUID.finditer(text.partition("?")[0]))[-1:]), None)


def _email(user: Json) -> str:
    return str((user.get("person") or {}).get("email") or "")


def _moment(text: Any) -> datetime:
    return datetime.fromisoformat(str(text))
