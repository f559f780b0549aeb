"""Who may read a page of Confluence: those who may view its space, less those whom a restriction of the page
or of a page above it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from config.errors import RejectedError
from connectors.base import Membership
from connectors.native.atlassian.site import AtlassianSite

Principals = frozenset[str]

_PAGE = 200


class Readers:
    """Permissions during one run. People whose mail address Confluence does not show read nothing."""

    def __init__(self, site: AtlassianSite) -> None:
        self._site = site
        self.of_space = cache(self._of_space)
        self._members = cache(self._members_of)
        self._mail = cache(self._mail_of)

    def of_content(self, space_id: str, content: Mapping[str, Any] | None) -> Principals | None:
        """Of a page with its restrictions and those above it; None when they are not known."""
        if content is None:
            return None
        readers = self.of_space(space_id)
        for level in (*(content.get("ancestors") or ()), content):
            if allowed := _restriction(level):
                readers = self._both(readers, allowed)
        return readers

    def memberships(self, space_ids: list[str]) -> Iterator[Membership]:
        """Who is in the groups that may view the spaces."""
        groups = set[str]().union(*map(self.of_space, space_ids))
        for group in sorted(one for one in groups if one.startswith("group:")):
            yield from (Membership(group, person) for person in sorted(self._members(group)))

    def _of_space(self, space_id: str) -> Principals:
        found = self._site.get(f"/wiki/api/v2/spaces/{space_id}", **{"include-permissions": "true"})
        permissions = found.get("permissions") or {}
        rows = list(permissions.get("results") or ())
        if (permissions.get("meta") or {}).get("hasMore"):
            path = f"/wiki/api/v2/spaces/{space_id}/permissions"
            rows = [row for page in self._site.pages(path, limit=250) for row in page]
        names = {
            self._principal(row.get("principal") or {})
            for row in rows
            if (row.get("operation") or {}).get("key") == "read"
            and (row.get("operation") or {}).get("targetType") == "space"
        }
        return frozenset(names - {""})

    def _principal(self, row: Mapping[str, Any]) -> str:
        match row.get("type"):
            case "group":
                return f"group:{row['id']}"
            case "user":
                return self._mail(str(row["id"]))
            case _:
                return ""

    def _mail_of(self, account: str) -> str:
        found = self._site.find("/wiki/rest/api/user", accountId=account) or {}
        return f"user:{found['email'].lower()}" if found.get("email") else ""

    def _members_of(self, group: str) -> Principals:
        path = f"/wiki/rest/api/group/{group.removeprefix('group:')}/membersByGroupId"
        people: set[str] = set()
        start = 0
        while True:
            rows = self._site.get(path, start=start, limit=_PAGE)["results"]
            people |= {f"user:{row['email'].lower()}" for row in rows if row.get("email")}
            start += len(rows)
            if len(rows) < _PAGE:
                return frozenset(people)

    def _both(self, outer: Principals, inner: Principals) -> Principals:
        """Who is meant by both: a principal named in both, and people who are in a group of the other."""
        kept = outer & inner
        return kept if kept == inner else kept | (self._people(outer) & self._people(inner))

    def _people(self, principals: Principals) -> Principals:
        people = {one for one in principals if one.startswith("user:")}
        for group in principals - people:
            try:
                people |= self._members(group)
            except RejectedError:  # nobody is known to be in it
                continue
        return frozenset(people)


def _restriction(content: Mapping[str, Any]) -> Principals:
    """Whom a page's own restriction allows; empty when there is none. Someone who is not shown by name
    still makes it one, and so does a restriction that is not shown."""
    read = (content.get("restrictions") or {}).get("read") or {}
    found = read.get("restrictions") or {}
    if "user" not in found or "group" not in found:
        return frozenset({"user:?"})
    users = (found.get("user") or {}).get("results") or ()
    groups = (found.get("group") or {}).get("results") or ()
    names = {f"user:{(one.get('email') or '?').lower()}" for one in users}
    return frozenset(names | {f"group:{one.get('id') or '?'}" for one in groups})
