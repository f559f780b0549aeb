"""Issues of Jira as records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.base import File, LiveHit, Record, Text
from connectors.native.atlassian.adf import markdown
from connectors.native.atlassian.site import AtlassianSite, moment

_PAGE = 100


class IssueRecords:
    """Makes them. Comments that only a group or role may see are left out."""

    def __init__(self, site: AtlassianSite, *, with_comments: bool) -> None:
        self._site, self._with_comments = site, with_comments

    def issue(self, issue: Mapping[str, Any]) -> Record:
        """With description and comments."""
        fields = issue["fields"]
        parts = [markdown(fields.get("description"))]
        if self._with_comments:
            parts += [_comment(one) for one in self._comments(issue)]
        return Record(
            external_id=issue["id"],
            title=f"{issue['key']}: {fields.get('summary') or ''}",
            body=Text("\n\n".join(filter(None, parts))),
            version=fields.get("updated") or "",
            scope=fields["project"]["id"],
            url=f"{self._site.url}/browse/{issue['key']}",
            author=_name(fields.get("reporter"), "displayName"),
            breadcrumbs=_breadcrumbs(fields),
            created_at=moment(fields.get("created")),
            updated_at=moment(fields.get("updated")),
            metadata={
                "key": issue["key"],
                "project": fields["project"]["key"],
                "status": _name(fields.get("status")),
                "type": _name(fields.get("issuetype")),
                "priority": _name(fields.get("priority")),
                "resolution": _name(fields.get("resolution")),
                "assignee": _name(fields.get("assignee"), "displayName"),
                "labels": list(fields.get("labels") or ()),
                "components": [_name(one) for one in fields.get("components") or ()],
            },
        )

    def _comments(self, issue: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Those that came along, or all of them when there are more."""
        found = issue["fields"].get("comment") or {}
        comments = list(found.get("comments") or ())
        if len(comments) < int(found.get("total") or 0):
            comments = []
            while True:
                answer = self._site.get(
                    f"/rest/api/3/issue/{issue['id']}/comment", startAt=len(comments), maxResults=_PAGE
                )  # fmt: skip
                comments += answer["comments"]
                if not answer["comments"] or len(comments) >= answer["total"]:
                    break
        return [one for one in comments if not one.get("visibility")]

    def attachment(
        self, issue: Mapping[str, Any], facts: Mapping[str, Any], max_bytes: int
    ) -> Record:
        """A file of an issue."""
        key, project = str(facts["id"]), issue["fields"]["project"]
        path = f"/rest/api/3/attachment/content/{key}"
        return Record(
            external_id=f"{issue['id']}/attachment/{key}",
            title=facts["filename"],
            body=File(
                lambda: self._site.client.download(path, max_bytes=max_bytes),
                facts["filename"],
                facts.get("mimeType") or "",
                facts.get("size"),
            ),
            version=key,  # attachments are never changed, only replaced
            scope=project["id"],
            url=f"{self._site.url}/browse/{issue['key']}",
            author=_name(facts.get("author"), "displayName"),
            breadcrumbs=(
                project["name"],
                f"{issue['key']}: {issue['fields'].get('summary') or ''}",
            ),
            created_at=moment(facts.get("created")),
            metadata={"key": issue["key"], "project": project["key"], "type": "attachment"},
        )

    def hit(self, issue: Mapping[str, Any]) -> LiveHit:
        """As a result of Jira's own search."""
        fields = issue["fields"]
        return LiveHit(
            external_id=issue["id"],
            title=f"{issue['key']}: {fields.get('summary') or ''}",
            text=markdown(fields.get("description")) or str(fields.get("summary") or ""),
            url=f"{self._site.url}/browse/{issue['key']}",
            author=_name(fields.get("reporter"), "displayName"),
            created_at=moment(fields.get("created")),
            updated_at=moment(fields.get("updated")),
            metadata={"status": _name(fields.get("status")), "project": fields["project"]["key"]},
        )


def _breadcrumbs(fields: Mapping[str, Any]) -> tuple[str, ...]:
    parent = fields.get("parent")
    above = (
        f"{parent['key']}: {(parent.get('fields') or {}).get('summary') or ''}" if parent else ""
    )
    return (fields["project"]["name"], *([above] if above else []))


def _comment(comment: Mapping[str, Any]) -> str:
    name, day = _name(comment.get("author"), "displayName"), (comment.get("created") or "")[:10]
    return f"## {name}, {day}\n\n{markdown(comment.get('body'))}"


def _name(value: Mapping[str, Any] | None, field: str = "name") -> str:
    return str((value or {}).get(field) or "")
