"""Asking GitHub: pages, and what is missing told from what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from config.errors import RateLimitedError, RejectedError, TransientError
from config.http import HttpClient
from config.http_answers import parse_json, retry_after_s

PAGE = 100
_EMPTY = 409  # "Git Repository is empty."
_MOST_PAGES = 10_000


class GithubApi:
    """One installation, as one account sees it."""

    def __init__(self, client: HttpClient, address: str) -> None:
        self._client = client
        # https://docs.github.com/enterprise-server/graphql/guides/forming-calls-with-graphql
        self._graphql = f"{address.rstrip('/').removesuffix('/v3')}/graphql"

    def get(self, path: str, **params: Any) -> Any:
        """One answer."""
        return self._client.get_json(path, params)

    def find(self, path: str, **params: Any) -> Any:
        """One answer, or None where there is nothing."""
        return self._unless(frozenset({404, 410}), path, params)

    def commits(self, path: str, **params: Any) -> list[Mapping[str, Any]]:
        """Commits; none in a repository that is empty. A branch that is not there raises."""
        return self._unless(frozenset({_EMPTY}), path, params) or []

    def rows(self, path: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        """Everything in a list, page after page."""
        for number in range(1, _MOST_PAGES):
            page, more = self._page(path, {**params, "per_page": PAGE, "page": number})
            yield from page
            if not more:
                return
        raise TransientError("GitHub's list does not end.")

    def raw(self, path: str, ref: str) -> bytes:
        """The content of a file. https://docs.github.com/rest/repos/contents"""
        headers = {"Accept": "application/vnd.github.raw+json"}
        return self._client.request("GET", path, params={"ref": ref}, headers=headers).content

    def search(self, kind: str, query: str, limit: int) -> list[Mapping[str, Any]]:
        """The best results of GitHub's own search. An invalid query (422) finds nothing."""
        headers = {"Accept": "application/vnd.github.text-match+json"}
        params: dict[str, Any] = {"q": query, "per_page": min(limit, PAGE)}
        if kind == "issues":
            params["advanced_search"] = "true"
        try:
            found = self._client.get_json(f"/search/{kind}", params, headers=headers)
        except RejectedError as error:
            if error.status == 422:
                return []
            raise
        return cast(list[Mapping[str, Any]], found["items"])

    def graphql(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a query finds in its one repository. What failed in part is worthless: what it lacks would be
        taken for gone. GitHub takes no longer than ten seconds; what it cannot answer in time is no trouble
        of the other repositories."""
        try:
            response = self._client.request(
                "POST", self._graphql, json={"query": query, "variables": variables}
            )
            answer = parse_json(response)
        except TransientError as error:
            raise RejectedError(error.message) from error
        found = (answer.get("data") or {}).get("repository")
        for fault in answer.get("errors") or ():
            kind, reason = str(fault.get("type")), str(fault.get("message"))
            if kind.startswith("RATE_LIMIT"):
                wait_s = retry_after_s(response.headers)
                raise RateLimitedError("GitHub asks to slow down.", wait_s)
            if not (found and kind == "NOT_FOUND"):  # a number that there is nothing under
                raise RejectedError(f"GitHub answers: {reason[:200]}")
        if found is None:
            raise RejectedError("GitHub does not show this repository.")
        return cast(Mapping[str, Any], found)

    def _unless(self, missing: frozenset[int], path: str, params: Mapping[str, Any]) -> Any:
        response = self._client.request("GET", path, params=params, expected=missing)
        return None if response.status_code in missing else response.json()

    def _page(self, path: str, params: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], bool]:
        response = self._client.request("GET", path, params=params)
        page = response.json()
        if response.links:
            return page, "next" in response.links
        return page, len(page) >= PAGE
