"""Asking GitHub: pages, and what is missing told from what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from config.errors import RejectedError, TransientError
from config.http import HttpClient

PAGE = 100
_EMPTY = 409  # "Git Repository is empty."
_MOST_PAGES = 10_000


class GithubApi:
    """One installation, as one account sees it."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

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

    def _unless(self, missing: frozenset[int], path: str, params: Mapping[str, Any]) -> Any:
        response = self._client.request("GET", path, params=params, expected=missing)
        return None if response.status_code in missing else response.json()

    def _page(self, path: str, params: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], bool]:
        response = self._client.request("GET", path, params=params)
        page = response.json()
        if response.links:
            return page, "next" in response.links
        return page, len(page) >= PAGE
