"""Every connector by kind. A native one is a line here; a manifest in `connectors/catalog/` is found by its
file name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from config.errors import NotFoundError
from connectors.base import Connector

NATIVE: dict[str, str] = {
    "confluence": "connectors.native.atlassian.confluence.ConfluenceConnector",
    "custom-mcp": "connectors.native.custom_mcp.connector.CustomMcpConnector",
    "folder": "connectors.native.folder.FolderConnector",
    "git-repo": "connectors.native.git_repo.connector.GitRepoConnector",
    "github": "connectors.native.github.connector.GithubConnector",
    "google": "connectors.native.google.gmail.GmailConnector",
    "google-drive": "connectors.native.google.drive.GoogleDriveConnector",
    "imap": "connectors.native.imap.connector.ImapConnector",
    "jira": "connectors.native.atlassian.jira.JiraConnector",
    "langsmith": "connectors.native.langsmith.LangSmithConnector",
    "notion": "connectors.native.notion.connector.NotionConnector",
    "push": "connectors.native.push.PushConnector",
    "rss": "connectors.native.rss.RssConnector",
    "s3": "connectors.native.s3.S3Connector",
    "slack": "connectors.native.slack.connector.SlackConnector",
    "sql": "connectors.native.sql.connector.SqlConnector",
    "web-search": "connectors.native.web_search.WebSearchConnector",
    "webdav": "connectors.native.webdav.WebdavConnector",
    "website": "connectors.native.website.connector.WebsiteConnector",
    "x": "connectors.native.x.XConnector",
}


CATALOG = Path(__file__).resolve().parent / "catalog"


@cache
def connector_class(kind: str) -> type[Connector[Any]]:
    """The class of a kind. Raises `NotFoundError`, and `InvalidInputError` when its manifest is wrong."""
    if kind in NATIVE:
        found: type[Connector[Any]] = import_string(NATIVE[kind])
        return found
    if kind in manifest_kinds():
        from connectors.manifest.loading import read_connector  # noqa: PLC0415 - when one is used

        return read_connector(CATALOG / f"{kind}.yml")
    raise NotFoundError(f"There is no connector {kind!r}.")


def manifest_kinds() -> tuple[str, ...]:
    """Those of the catalog, in alphabetical order."""
    return tuple(sorted(path.stem for path in CATALOG.glob("*.yml")))


def kinds() -> tuple[str, ...]:
    """All of them, in alphabetical order."""
    return tuple(sorted({*NATIVE, *manifest_kinds()}))
