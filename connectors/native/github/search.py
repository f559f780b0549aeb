"""Searching GitHub itself, within the repositories that are configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from config.errors import InvalidInputError
from connectors.base import LiveHit
from connectors.native.github.api import GithubApi
from connectors.native.github.repository import moment
from connectors.native.github.settings import GithubConfig

_AT_ONCE = 5  # repositories in one query: more exceed GitHub's limits for queries
_LONGEST_QUERY = 150  # of the 256 characters that GitHub takes


def search_github(api: GithubApi, config: GithubConfig, query: str, limit: int) -> list[LiveHit]:
    """Issues and pull requests first, then code."""
    words = _quoted(query)
    kinds = " OR ".join(_kinds(config))
    hits: list[LiveHit] = []
    for places in _places(api, config):
        if kinds:
            rows = api.search("issues", f"{words} ({kinds}) ({' OR '.join(places)})", limit)
            hits += [_issue_hit(row) for row in rows]
        if config.code == "all":
            rows = api.search("code", f"{words} {' '.join(places)}", limit)
            hits += [_code_hit(row) for row in rows]
    return hits[:limit]


def repository_name(text: str) -> str:
    """`owner/name` out of what people paste."""
    match = re.fullmatch(r"(?:https?://[^/]+/)?([\w.-]+/[\w.-]+?)(?:\.git)?/?", text.strip())
    if not match:
        raise InvalidInputError(f"{text!r} is no repository: write owner/name.")
    return match[1]


def _places(api: GithubApi, config: GithubConfig) -> list[list[str]]:
    names = [f"repo:{repository_name(name)}" for name in config.repositories]
    names += [f"org:{config.organisation}"] if config.organisation else []
    if not names:
        names = [f"user:{api.get('/user')['login']}"]
    return [names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE)]


def _kinds(config: GithubConfig) -> list[str]:
    kinds = {"is:issue": config.issues, "is:pr": config.pull_requests}
    return [kind for kind, is_wanted in kinds.items() if is_wanted]


def _quoted(query: str) -> str:
    """Words as they are, so that none of them can widen the search."""
    words, length = [], 0
    for word in re.sub(r'["\\]', " ", query).split():
        length += len(word) + 3
        if length > _LONGEST_QUERY:
            break
        words.append(f'"{word}"')
    return " ".join(words)


def _issue_hit(row: Mapping[str, Any]) -> LiveHit:
    repository = "/".join(row["repository_url"].split("/")[-2:])
    return LiveHit(
        external_id=f"{repository}/issues/{row['number']}",
        title=f"{row['title']} (#{row['number']})",
        text=row.get("body") or row["title"],
        url=row["html_url"],
        author=(row.get("user") or {}).get("login") or "",
        created_at=moment(row["created_at"]),
        updated_at=moment(row["updated_at"]),
        metadata={"repository": repository, "state": row["state"]},
    )


def _code_hit(row: Mapping[str, Any]) -> LiveHit:
    repository = row["repository"]["full_name"]
    pieces = [match.get("fragment") or "" for match in row.get("text_matches") or ()]
    return LiveHit(
        external_id=f"{repository}/blob/{row['path']}",
        title=row["path"],
        text="\n…\n".join(filter(None, pieces)) or row["path"],
        url=row["html_url"],
        metadata={"repository": repository, "path": row["path"]},
    )
