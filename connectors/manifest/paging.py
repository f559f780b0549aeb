"""From one page to the next: pure functions of answer and position, and a guard against going in circles.

A position is JSON; the empty one is the first page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urljoin

from config.errors import RejectedError
from connectors.manifest.paging_schema import (
    BodyCursor,
    GraphqlConnection,
    LinkHeader,
    NextLink,
    NoPaging,
    Offset,
    PageNumber,
    Paging,
)
from connectors.manifest.templates import search

Position = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that is ready to be sent."""

    method: str
    url: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    data: Any
    url: str = ""
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def asked_at(paging: Paging, ask: Ask, position: Position) -> Ask:
    """The request for a page."""
    if "link" in position:
        return replace(ask, url=str(position["link"]), params={})
    match paging:
        case PageNumber() | Offset():
            return _with(ask, paging.place, paging.param, position.get("at", paging.first))
        case BodyCursor() if position:
            return _with(ask, paging.place, paging.param, position["cursor"])
        case GraphqlConnection() if position:
            return _with(ask, "variables", paging.variable, position["cursor"])
    return ask


def following(paging: Paging, position: Position, answer: Answer, count: int) -> Position | None:
    """The position after a page of `count` records; None at the end."""
    found: Position | None = None
    match paging:
        case NoPaging():
            return None
        case PageNumber(first=first):
            found = {"at": position.get("at", first) + 1} if count or paging.more else None
        case Offset(first=first):
            found = {"at": position.get("at", first) + count} if count else None
        case BodyCursor(next=path):
            found = _position("cursor", search(path, answer.data))
        case NextLink(next=path):
            found = _position("link", search(path, answer.data), answer.url)
        case LinkHeader():
            named = answer.links.get("next", {})
            # Sentry names a next page always and says in `results` whether there is one.
            found = _position("link", named.get("url"), answer.url)
            return None if named.get("results") == "false" else found
        case GraphqlConnection(connection=path):
            info = search(f"{path}.pageInfo", answer.data) or {}
            return _position("cursor", info.get("endCursor")) if info.get("hasNextPage") else None
    goes_on = paging.more is None or bool(search(paging.more, answer.data))
    return found if goes_on else None


@dataclass(slots=True)
class PageGuard:
    """Ends a listing that goes in circles: a page or position that was there before, or too many pages."""

    name: str
    most: int
    count: int = 0
    _seen: set[str] = field(default_factory=set)

    def admit(self, position: Position, records: list[Any]) -> None:
        """Count a page. Raises `RejectedError`."""
        self.count += 1
        if self.count > self.most:
            raise RejectedError(f"{self.name} has more than {self.most} pages (max_pages).")
        marks = [f"position {_digest(position)}"]
        marks += [f"page {_digest(records)}"] if records else []
        for mark in marks:
            if mark in self._seen:
                what = mark.split(" ", maxsplit=1)[0]
                raise RejectedError(
                    f"{self.name} goes in circles: its {what} {self.count} was there before "
                    f"({json.dumps(position)[:200]})."
                )
        self._seen.update(marks)


def _position(name: str, value: Any, base: str = "") -> Position | None:
    if value in (None, "", False):
        return None
    return {name: urljoin(base, str(value)) if name == "link" else value}


def _with(ask: Ask, place: str, name: str, value: Any) -> Ask:
    if place == "params":
        return replace(ask, params={**ask.params, name: value})
    path = name.split(".") if place == "body" else ["variables", name]
    return replace(ask, json=_placed(ask.json or {}, path, value))


def _placed(body: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    if len(path) == 1:
        return {**body, path[0]: value}
    return {**body, path[0]: _placed(body.get(path[0]) or {}, path[1:], value)}


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
