"""Content of Confluence as records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.base import File, LiveHit, Record, Text
from connectors.native.atlassian.adf import markdown
from connectors.native.atlassian.confluence_readers import Readers
from connectors.native.atlassian.site import AtlassianSite, moment


class ContentRecords:
    """Makes them, each with its readers."""

    def __init__(self, site: AtlassianSite, readers: Readers, max_bytes: int) -> None:
        self._site, self._readers, self._max_bytes = site, readers, max_bytes

    def document(
        self,
        kind: str,
        space: Mapping[str, Any],
        row: Mapping[str, Any],
        facts: Mapping[str, Any] | None,
    ) -> Record:
        """A page or blog post; `facts` are what CQL knows of it."""
        known = facts or {}
        body = ((row.get("body") or {}).get("atlas_doc_format") or {}).get("value")
        labels = ((known.get("metadata") or {}).get("labels") or {}).get("results") or ()
        return Record(
            external_id=row["id"],
            title=row["title"],
            body=Text(markdown(body)),
            version=str(row["version"]["number"]),
            scope=space["id"],
            url=self._url(row),
            author=_author(known),
            breadcrumbs=(space["name"], *(one["title"] for one in known.get("ancestors") or ())),
            created_at=moment(row.get("createdAt")),
            updated_at=moment(row["version"].get("createdAt")),
            metadata={
                "type": kind,
                "space": space["key"],
                "labels": [one["name"] for one in labels],
                "version": row["version"]["number"],
            },
            principals=self._readers.of_content(space["id"], facts),
        )

    def comment(
        self, space: Mapping[str, Any], row: Mapping[str, Any], page: Mapping[str, Any] | None
    ) -> Record:
        """A comment, footer or inline, on a page."""
        body = Text(markdown(((row.get("body") or {}).get("atlas_doc_format") or {}).get("value")))
        return self._part(space, row, page, f"Re: {container(row).get('title') or ''}", body)

    def attachment(
        self, space: Mapping[str, Any], row: Mapping[str, Any], page: Mapping[str, Any] | None
    ) -> Record:
        """A file of a page."""
        facts = row.get("extensions") or {}
        path = (
            f"/wiki/rest/api/content/{container(row)['id']}/child/attachment/{row['id']}/download"
        )
        body = File(
            lambda: self._site.client.download(path, max_bytes=self._max_bytes),
            row["title"],
            facts.get("mediaType") or "",
            facts.get("fileSize"),
        )
        return self._part(space, row, page, row["title"], body)

    def _part(
        self,
        space: Mapping[str, Any],
        row: Mapping[str, Any],
        page: Mapping[str, Any] | None,
        title: str,
        body: Text | File,
    ) -> Record:
        return Record(
            external_id=row["id"],
            title=title,
            body=body,
            version=str(row["version"]["number"]),
            scope=space["id"],
            url=self._url(row),
            author=_author(row),
            breadcrumbs=(space["name"], container(row).get("title") or ""),
            created_at=moment((row.get("history") or {}).get("createdDate")),
            updated_at=moment(row["version"].get("when")),
            metadata={
                "type": row["type"],
                "space": space["key"],
                "page": container(row).get("id"),
            },
            principals=self._readers.of_content(space["id"], page),
        )

    def hit(self, row: Mapping[str, Any]) -> LiveHit:
        """As a result of Confluence's own search."""
        return LiveHit(
            external_id=row["content"]["id"],
            title=row["content"].get("title") or row.get("title") or "",
            text=row.get("excerpt") or row.get("title") or "",
            url=f"{self._site.url}/wiki{row.get('url') or ''}",
            updated_at=moment(row.get("lastModified")),
            metadata={"type": row["content"].get("type")},
        )

    def _url(self, row: Mapping[str, Any]) -> str:
        link = (row.get("_links") or {}).get("webui") or ""
        return f"{self._site.url}/wiki{link}" if link else self._site.url


def attachment_row(found: Mapping[str, Any], page: Mapping[str, Any]) -> dict[str, Any]:
    """An attachment of version 2 of the API as version 1 has it."""
    version = found.get("version") or {}
    return {
        "id": found["id"],
        "type": "attachment",
        "title": found["title"],
        "container": {"id": page["id"], "title": page["title"]},
        "extensions": {"mediaType": found.get("mediaType"), "fileSize": found.get("fileSize")},
        "version": {"number": version.get("number"), "when": version.get("createdAt")},
        "history": {"createdDate": found.get("createdAt")},
        "_links": {"webui": found.get("webuiLink")},
    }


def container(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The page that a comment or attachment belongs to."""
    found: Mapping[str, Any] = row.get("container") or {}
    return found


def _author(content: Mapping[str, Any]) -> str:
    person = (content.get("history") or {}).get("createdBy") or {}
    return str(person.get("displayName") or person.get("publicName") or "")
