"""The discussions of a repository, which only GraphQL lists.

https://docs.github.com/graphql/guides/using-the-graphql-api-for-discussions
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

from config.errors import RejectedError
from connectors.base import Deletion, File, Record
from connectors.native.github.api import GithubApi
from connectors.native.github.repository import Repository, moment

_COMMENTS = """
fragment page on DiscussionCommentConnection {
  pageInfo { endCursor hasNextPage }
  nodes { ...said replies(first: $replies) { pageInfo { hasNextPage } nodes { ...said } } }
}
fragment said on DiscussionComment { body createdAt isAnswer author { login } }
"""
_DISCUSSION = f"""
fragment whole on Discussion {{
  number title body url createdAt updatedAt isAnswered author {{ login }} category {{ name }}
  comments(first: 50) {{ ...page }}
}}
{_COMMENTS}"""
_LIST = f"""
query($owner: String!, $name: String!, $after: String, $direction: OrderDirection!, $replies: Int!) {{
  repository(owner: $owner, name: $name) {{
    discussions(first: 50, after: $after, orderBy: {{field: UPDATED_AT, direction: $direction}}) {{
      pageInfo {{ endCursor hasNextPage }}
      nodes {{ ...whole }}
    }}
  }}
}}
{_DISCUSSION}"""
_ONE = f"""
query($owner: String!, $name: String!, $number: Int!, $replies: Int!) {{
  repository(owner: $owner, name: $name) {{ discussion(number: $number) {{ ...whole }} }}
}}
{_DISCUSSION}"""
_MORE = f"""
query($owner: String!, $name: String!, $number: Int!, $after: String, $replies: Int!) {{
  repository(owner: $owner, name: $name) {{
    discussion(number: $number) {{ comments(first: 50, after: $after) {{ ...page }} }}
  }}
}}
{_COMMENTS}"""
_REPLIES, _MOST_REPLIES = 20, 100  # to a comment, within a listing and when that was too few


class Discussions:
    """Those of one repository."""

    def __init__(self, api: GithubApi, repository: Repository) -> None:
        self._api, self._repository = api, repository

    def pages(self, since: str) -> Iterator[list[Mapping[str, Any]]]:
        """Without `since` the longest untouched first: what is touched meanwhile moves to the end, which is
        still to come. Otherwise the newest first, down to that time, which is included."""
        after: str | None = None
        while True:
            direction = "DESC" if since else "ASC"
            found = self._ask(_LIST, after=after, direction=direction)["discussions"]
            rows = [row for row in found["nodes"] if row]
            new = [row for row in rows if row["updatedAt"] >= since]
            yield new
            if len(new) < len(rows) or (after := _next(found, after)) is None:
                return

    def find(self, number: str) -> Record | Deletion:
        """One as it is now."""
        found = self._ask(_ONE, number=int(number))["discussion"]
        if found is None:
            return Deletion(f"{self._repository.name}/discussions/{number}")
        return self.record(found)

    def record(self, row: Mapping[str, Any]) -> Record:
        """A discussion. Comments that the listing has no room for are read when it has been touched."""
        name, category = self._repository.name, row["category"]["name"]
        return Record(
            external_id=f"{name}/discussions/{row['number']}",
            title=f"{row['title']} (#{row['number']})",
            body=File(partial(self._opened, row), f"{row['number']}.md", "text/markdown"),
            version=row["updatedAt"],
            scope=self._repository.scope("discussions"),
            url=row["url"],
            author=_login(row),
            breadcrumbs=(name, "Discussions", category),
            created_at=moment(row["createdAt"]),
            updated_at=moment(row["updatedAt"]),
            metadata={
                "type": "discussion",
                "repository": name,
                "number": row["number"],
                "category": category,
                "answered": bool(row["isAnswered"]),
            },
            principals=frozenset({self._repository.readers}),
        )

    @contextmanager
    def _opened(self, row: Mapping[str, Any]) -> Iterator[BinaryIO]:
        parts = [f"# {row['title']}", row["body"] or ""]
        for comment in self._comments(row):
            parts.append(_said(comment, "##"))
            parts += [_said(reply, "###") for reply in comment["replies"]["nodes"] if reply]
        yield io.BytesIO("\n\n".join(part for part in parts if part).encode())

    def _comments(self, row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        listed = row["comments"]
        comments = [one for one in listed["nodes"] if one]
        parts = [listed, *(one["replies"] for one in comments)]
        if not any(part["pageInfo"]["hasNextPage"] for part in parts):
            yield from comments
            return
        after: str | None = None
        while True:
            asked = {"number": row["number"], "after": after, "replies": _MOST_REPLIES}
            if (discussion := self._ask(_MORE, **asked)["discussion"]) is None:
                return  # gone since it was listed
            found = discussion["comments"]
            yield from (one for one in found["nodes"] if one)
            if (after := _next(found, after)) is None:
                return

    def _ask(self, query: str, **variables: Any) -> Mapping[str, Any]:
        owner, name = self._repository.name.split("/")
        asked = {"owner": owner, "name": name, "replies": _REPLIES, **variables}
        try:
            return self._api.graphql(query, asked)
        except RejectedError as error:
            raise RejectedError(f"The discussions: {error.message}", error.status) from error


def _next(found: Mapping[str, Any], after: str | None) -> str | None:
    """Where the next page begins; None at the end."""
    page = found["pageInfo"]
    if not page["hasNextPage"]:
        return None
    if not page["endCursor"] or page["endCursor"] == after:
        raise RejectedError("GitHub's list does not go on.")
    return str(page["endCursor"])


def _said(row: Mapping[str, Any], mark: str) -> str:
    answer = ", the answer" if row["isAnswer"] else ""
    return f"{mark} {_login(row)}, {row['createdAt'][:10]}{answer}\n\n{row['body'] or ''}"


def _login(row: Mapping[str, Any]) -> str:
    return str((row["author"] or {}).get("login") or "ghost")
