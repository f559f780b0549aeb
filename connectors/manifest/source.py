"""Asking a source what a manifest says: addresses, errors that hide in answers, page after page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import requests

from config.errors import CredentialsError, InvalidInputError, RateLimitedError, RejectedError
from config.http import HttpClient
from config.http_answers import parse_json
from connectors.base import Context
from connectors.manifest.connection_schema import ApiKeyAuth
from connectors.manifest.paging import Answer, Ask, PageGuard, Position, asked_at, following
from connectors.manifest.paging_schema import Paging
from connectors.manifest.schema import Endpoint, Manifest
from connectors.manifest.templates import Scope, as_text, plain, render, render_url, search

# How GraphQL servers name their refusals, in `extensions.code`, `extensions.type` or `type`.
_LIMITED = ("RATELIMITED", "RATE_LIMITED", "THROTTLED", "TOO_MANY_REQUESTS")
_UNKNOWN = ("AUTHENTICATION_ERROR", "UNAUTHENTICATED", "AUTHENTICATION ERROR")


@dataclass(frozen=True, slots=True)
class Page:
    """Records, and where the next ones are."""

    records: list[Any]
    next: Position | None
    answer: Answer


class Source:
    """One source with one configuration. Its credentials go to its own address only."""

    def __init__(self, manifest: Manifest, config: Mapping[str, Any], context: Context) -> None:
        self.manifest = manifest
        self.scope: Scope = {"config": config}
        self.base_url = render(manifest.base_url, self.scope).rstrip("/")
        if not self.base_url.startswith(("https://", "http://")):
            raise InvalidInputError(f"{self.base_url!r} is no address of {manifest.name}.")
        headers = {key: render(value, self.scope) for key, value in manifest.headers.items()}
        keys = {auth.header for auth in manifest.auth if isinstance(auth, ApiKeyAuth)}
        self._client: HttpClient = context.client(
            self.base_url, headers=headers, secret_headers=(*keys - {""}, *headers)
        )
        self._elsewhere: HttpClient = context.client(auth=None)
        self._context = context

    def ask(self, endpoint: Endpoint, scope: Scope) -> Answer:
        """The answer to a single request."""
        return self._send(self._request(endpoint, scope), endpoint)

    def pages(
        self, endpoint: Endpoint, scope: Scope, *, records: str, paging: Paging, name: str,
        start: Position | None = None, counted: int = 0,
    ) -> Iterator[Page]:  # fmt: skip
        """A listing page by page, from a position on. Raises `RejectedError` when it goes in circles."""
        ask = self._request(endpoint, scope)
        guard = PageGuard(name, paging.max_pages, counted)
        position: Position | None = start or {}
        while position is not None:
            asked = asked_at(paging, ask, position)
            try:
                answer = self._send(asked, endpoint)
            except RejectedError as error:
                if error.status in endpoint.empty_on:
                    return
                raise
            found = search(records, answer.data)
            if not isinstance(found, list):
                raise RejectedError(f"{name}: there is no list at {records!r} in the answer.")
            guard.admit(position, found)
            position = self._without_key(following(paging, position, answer, len(found)))
            yield Page(found, position, answer)

    def download(self, url: str) -> AbstractContextManager[BinaryIO]:
        """A file. Credentials are sent to the source itself only, not to where it keeps its files."""
        client = self._client if _is_at(url, self.base_url) else self._elsewhere
        return client.download(url, max_bytes=self._context.max_bytes)

    def _request(self, endpoint: Endpoint, scope: Scope) -> Ask:
        headers = {key: render(value, scope) for key, value in endpoint.headers.items()}
        path = render_url(endpoint.path, scope) if endpoint.path else ""
        path = endpoint.base_url.rstrip("/") + path
        if endpoint.graphql:
            variables = plain(endpoint.variables, scope)
            body = {"query": endpoint.graphql, "variables": variables}
            return Ask("POST", path or self.base_url, {}, body, headers)
        params = {key: _param(value) for key, value in plain(endpoint.params, scope).items()}
        return Ask(endpoint.method, path, params, plain(endpoint.body, scope), headers)

    def _send(self, ask: Ask, endpoint: Endpoint) -> Answer:
        is_graphql = bool(endpoint.graphql)
        if not _is_at(ask.url, endpoint.base_url or self.base_url):
            host = urlsplit(ask.url).hostname
            raise RejectedError(f"The next page lies on another host ({host}); it is not asked.")
        client = self._elsewhere if endpoint.base_url else self._client
        response = client.request(
            ask.method, ask.url, params=ask.params, json=ask.json, headers=ask.headers,
            expected=frozenset({400}) if is_graphql else frozenset(),
        )  # fmt: skip
        data = parse_json(response) if response.content else None
        if is_graphql:
            _refuse_graphql_errors(data, response)
        if self.manifest.error and (reason := search(self.manifest.error, data)):
            raise RejectedError(f"{self.manifest.name} answers: {as_text(reason)[:300]}")
        return Answer(data, str(response.url), response.links)

    def _without_key(self, position: Position | None) -> Position | None:
        """Links repeat the key that the query held; positions are stored, where no secret belongs."""
        keys = {auth.param for auth in self.manifest.auth if isinstance(auth, ApiKeyAuth)} - {""}
        if not keys or not position or "link" not in position:
            return position
        parts = urlsplit(position["link"])
        kept = [
            pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in keys
        ]
        return {"link": urlunsplit(parts._replace(query=urlencode(kept)))}


def _is_at(url: str, base_url: str) -> bool:
    """Whether an address, or a path, lies on the host of a base address."""
    asked, own = urlsplit(url), urlsplit(base_url)
    same = (asked.scheme, asked.netloc.lower()) == (own.scheme, own.netloc.lower())
    return "://" not in url or same


def _param(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, list) else as_text(value)


def _refuse_graphql_errors(data: Any, response: requests.Response) -> None:
    """A part that failed makes the whole answer worthless: what it lacks would be taken for gone."""
    errors = data.get("errors") if isinstance(data, dict) else None
    if not errors and response.status_code < 400:
        return
    first = errors[0] if isinstance(errors, list) and errors else {}
    first = first if isinstance(first, dict) else {"message": first}
    extensions = first.get("extensions") or {}
    codes = {str(one).upper() for one in
             (extensions.get("code"), extensions.get("type"), first.get("type"))}  # fmt: skip
    host, reason = urlsplit(str(response.url)).hostname, as_text(first.get("message"))[:300]
    if codes & set(_LIMITED):
        raise RateLimitedError(f"{host} asks to slow down.")
    if codes & set(_UNKNOWN):
        raise CredentialsError(f"{host} does not accept the credentials.")
    raise RejectedError(f"{host} refuses the query: {reason or 'no reason given'}")
