"""Pages, blog posts, comments and attachments of Confluence Cloud.

Content comes from the REST API's version 2; labels, ancestors and restrictions of many pages at once, and
what has changed, come by CQL of version 1, which has no successor yet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote

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
    Refetch,
    Settings,
)
from connectors.native.atlassian.confluence_readers import Readers
from connectors.native.atlassian.confluence_records import ContentRecords, attachment_row, container
from connectors.native.atlassian.site import AtlassianSite, api_token, sign_in
from connectors.native.paging import follow_pages

_PAGE = 50  # as many as one CQL query names
_OVERLAP = timedelta(minutes=10)  # the search index lags behind
_READ = "restrictions.read.restrictions"
_FACTS = f"history,ancestors,metadata.labels,{_READ}.user,{_READ}.group,ancestors.{_READ}.user,ancestors.{_READ}.group"
_PARTS = "history,version,container,extensions,body.atlas_doc_format"
_COLLECTIONS = {"page": "pages", "blogpost": "blogposts"}
_STALE_PAGE = 400


class ConfluenceConfig(Settings):
    """Which spaces, and what of them."""

    site: str = Field(
        default="",
        title="Site",
        description="https://NAME.atlassian.net. May be empty after a sign-in for one site.",
    )
    spaces: list[str] = Field(
        default=[], title="Only these spaces", description="Keys; empty: all."
    )
    exclude_spaces: list[str] = Field(default=[], title="Not these spaces")
    personal_spaces: bool = Field(default=False, title="Personal spaces too")
    blog_posts: bool = Field(default=True, title="Blog posts")
    comments: bool = Field(default=True, title="Comments")
    attachments: bool = Field(default=True, title="Attachments")


class ConfluenceConnector(Connector[ConfluenceConfig], LiveSearch, Memberships, Browsable, Refetch):
    """Each space keeps the time of its last complete run. A full run tells what is gone, and sees changed
    restrictions of pages that were not edited: Confluence lists neither as changes."""

    places_field = "spaces"
    spec = ConnectorSpec(
        kind="confluence",
        name="Confluence",
        description="Pages, blog posts, comments and attachments of spaces.",
        category=Category.DOCUMENTS,
        config=ConfluenceConfig,
        auth=(
            api_token(),
            sign_in(
                "read:space:confluence", "read:page:confluence", "read:permission:confluence",
                "read:confluence-content.all", "read:confluence-content.permission", "search:confluence",
                "readonly:content.attachment:confluence", "read:confluence-user", "read:confluence-groups",
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
        documentation_url="https://developer.atlassian.com/cloud/confluence/rest/v2/",
        rate_limit="10/second",
    )  # fmt: skip

    def __init__(self, config: ConfluenceConfig, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        self._site = AtlassianSite(context, credentials, config.site, "confluence")
        self._readers = Readers(self._site)
        self._records = ContentRecords(self._site, self._readers, context.max_bytes)

    def check(self) -> str:
        """Who signs in, and that the spaces are there."""
        me = self._site.get("/wiki/rest/api/user/current")
        if self._missing:
            raise InvalidInputError(
                f"There is no space {', '.join(self._missing)}, or it is not shown."
            )
        name = me.get("displayName") or me.get("publicName") or "An account"
        return f"{name} on {self._site.url}: {len(self._spaces)} spaces"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """One space after the other. One that cannot be read is reported and left as it was."""
        positions = {key: dict(one) for key, one in cursor.get("spaces", {}).items()}
        for key in self._missing:
            yield Notice(f"Space {key} is not there, or is not shown.")
        for space in self._spaces:
            position = positions.setdefault(space["id"], {})
            try:
                for event in self._read(space, position):
                    yield event or _checkpoint(positions)
            except RejectedError as error:
                yield Notice(f"{space['key']} could not be read completely. {error.message}")
        for gone in positions.keys() - {one["id"] for one in self._spaces}:
            yield Complete(gone)
            del positions[gone]
        yield _checkpoint(positions)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single attachments: all else comes with its listing and cannot fail by itself."""
        spaces = {one["id"]: one for one in self._spaces}
        for external_id in external_ids:
            if not external_id.startswith("att"):
                continue
            try:
                yield from self._attachment(external_id, spaces)
            except RejectedError as error:
                yield Failure(external_id, error.message)

    def _attachment(
        self, external_id: str, spaces: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[Event]:
        found = self._site.find(f"/wiki/api/v2/attachments/{quote(external_id)}") or {}
        kind = "page" if found.get("pageId") else "blogpost"
        page_id = found.get("pageId") or found.get("blogPostId")
        page = self._site.find(f"/wiki/api/v2/{_COLLECTIONS[kind]}/{page_id}") if page_id else None
        if page is None or page["spaceId"] not in spaces:
            yield Deletion(external_id)
        else:
            row = attachment_row(found, page)
            yield from self._parts("attachment", spaces[page["spaceId"]], [row])

    def memberships(self) -> Iterator[Membership]:
        """Who is in the groups that may view the spaces."""
        return self._readers.memberships([one["id"] for one in self._spaces])

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Confluence's own search, within what is configured."""
        words = " ".join(re.sub(r"[^\w\s]", " ", query).split())
        if not words:
            return []
        keys = ", ".join(f'"{_key(one)}"' for one in self.config.spaces)
        hidden = ", ".join(f'"{_key(one)}"' for one in self.config.exclude_spaces)
        cql = f'text ~ "{words}" and type in (page, blogpost)'
        cql += f" and space in ({keys})" if keys else ""
        cql += f" and space not in ({hidden})" if hidden else ""
        answer = self._site.get("/wiki/rest/api/search", cql=cql, limit=limit, excerpt="indexed")
        return [self._records.hit(one) for one in answer["results"] if one.get("content")]

    def browse(self, parent: str) -> list[Node]:
        """Spaces."""
        return [] if parent else [Node(one["key"], one["name"]) for one in self._spaces]

    # --- a space ---------------------------------------------------------------------------------

    def _read(self, space: Mapping[str, Any], position: dict[str, Any]) -> Iterator[Event | None]:
        """None where a position may be kept. Only a listing that begins here, of everything, tells what is
        gone. Changes are few: they are read in one go."""
        is_whole, since = not position, position.get("since", "")
        at: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(),
            "stage": 0,
            "cursor": "",
        } | position
        kinds = self._kinds()
        while at["stage"] < len(kinds):
            events, at["cursor"] = self._page(kinds[at["stage"]], space, since, at["cursor"])
            yield from events
            at["stage"] += 0 if at["cursor"] else 1
            if not since:
                position |= at
                yield None
        if is_whole:
            yield Complete(space["id"])
        position.clear()
        position["since"] = at["started"]
        yield None

    def _kinds(self) -> list[str]:
        config = self.config
        wanted = {
            "page": True,
            "blogpost": config.blog_posts,
            "comment": config.comments,
            "attachment": config.attachments,
        }
        return [kind for kind, is_wanted in wanted.items() if is_wanted]

    def _page(
        self, kind: str, space: Mapping[str, Any], since: str, cursor: str
    ) -> tuple[Iterable[Event], str]:
        """Events of a page of the listing, and the next page's cursor. One that has run out means the
        first page again."""
        try:
            return self._listed(kind, space, since, cursor)
        except RejectedError as error:
            if error.status != _STALE_PAGE or not cursor:
                raise
            return self._listed(kind, space, since, "")

    def _listed(
        self, kind: str, space: Mapping[str, Any], since: str, cursor: str
    ) -> tuple[Iterable[Event], str]:
        cql = f'space = "{space["key"]}" and type = {kind}'
        if since:
            age = datetime.now(UTC) - datetime.fromisoformat(since) + _OVERLAP
            cql += f' and lastmodified >= now("-{math.ceil(age.total_seconds() / 60)}m")'
        collection = _COLLECTIONS.get(kind)
        if collection is None:
            rows, after = self._search(cql, _PARTS, cursor)
            return self._parts(kind, space, rows), after
        params = {"body-format": "atlas_doc_format", "limit": _PAGE}
        if not since:
            path = f"/wiki/api/v2/spaces/{space['id']}/{collection}"
            rows, after = self._site.page(path, cursor, status="current", **params)
            return self._documents(kind, space, rows), after
        changed, after = self._search(cql, "", cursor)
        ids = ",".join(one["id"] for one in changed)
        rows = self._site.page(f"/wiki/api/v2/{collection}", "", id=ids, **params)[0] if ids else []
        return self._documents(kind, space, rows), after

    def _search(
        self, cql: str, expand: str, cursor: str = ""
    ) -> tuple[list[Mapping[str, Any]], str]:
        params = {"cql": cql, "limit": _PAGE, **({"expand": expand} if expand else {})}
        return self._site.page("/wiki/rest/api/content/search", cursor, **params)

    def _facts(self, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Labels, ancestors and restrictions, by id."""
        wanted = sorted(set(filter(None, ids)))
        found: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(wanted), _PAGE):
            cql = f"id in ({', '.join(wanted[start : start + _PAGE])})"
            for rows in follow_pages(partial(self._search, cql, _FACTS)):
                found |= {row["id"]: row for row in rows}
        return found

    # --- pages and blog posts --------------------------------------------------------------------

    def _documents(
        self, kind: str, space: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[Event]:
        facts = self._facts(row["id"] for row in rows)
        for row in rows:
            try:
                yield self._records.document(kind, space, row, facts.get(row["id"]))
            except (KeyError, TypeError):
                message = "Confluence describes this page incompletely."
                yield Failure(row["id"], message, space["id"])

    # --- comments and attachments ----------------------------------------------------------------

    def _parts(
        self, kind: str, space: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[Event]:
        """They are read by whoever reads the page they belong to."""
        pages = self._facts(container(row).get("id", "") for row in rows)
        make = self._records.comment if kind == "comment" else self._records.attachment
        for row in rows:
            page = pages.get(container(row).get("id", ""))
            try:
                yield make(space, row, page)
            except (KeyError, TypeError):
                message = f"Confluence describes this {kind} incompletely."
                yield Failure(row["id"], message, space["id"])

    # --- what there is ---------------------------------------------------------------------------

    @cached_property
    def _spaces(self) -> list[Mapping[str, Any]]:
        wanted = {key.upper() for key in self.config.spaces}
        unwanted = {key.upper() for key in self.config.exclude_spaces}
        return [
            space
            for page in self._site.pages("/wiki/api/v2/spaces", limit=250, status="current")
            for space in page
            if space["key"].upper() not in unwanted
            and (space["key"].upper() in wanted if wanted else self._is_usual(space))
        ]

    def _is_usual(self, space: Mapping[str, Any]) -> bool:
        return self.config.personal_spaces or space.get("type") != "personal"

    @cached_property
    def _missing(self) -> list[str]:
        present = {one["key"].upper() for one in self._spaces}
        return [key for key in self.config.spaces if key.upper() not in present]


def _checkpoint(positions: Mapping[str, Mapping[str, Any]]) -> Checkpoint:
    return Checkpoint({"spaces": {key: dict(one) for key, one in positions.items()}})


def _key(text: str) -> str:
    """A space's key within CQL; personal spaces begin with a tilde."""
    return re.sub(r"[^\w~]", "", text)
