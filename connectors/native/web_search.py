"""Results of web searches at Tavily: of standing queries in each sync, and live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from config.errors import CredentialsError, InvalidInputError, RateLimitedError, RemoteError
from config.http import HttpClient
from connectors.base import (
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    LiveHit,
    LiveSearch,
    Notice,
    Record,
    Settings,
    Text,
    token_auth,
)

_MOST_RESULTS = 20


class WebSearchConfig(Settings):
    """What is searched for, and how."""

    queries: list[str] = Field(
        default=[],
        title="Queries",
        description="Searched for in each sync; none: live search only.",
    )
    max_results: int = Field(default=5, ge=1, le=_MOST_RESULTS, title="Results for each query")
    depth: Literal["basic", "advanced"] = Field(
        default="basic", title="Depth", description="Advanced costs two credits for each query."
    )
    topic: Literal["general", "news", "finance"] = Field(default="general", title="Topic")
    time_range: Literal["", "day", "week", "month", "year"] = Field(
        default="", title="Not older than", description="Empty: any age."
    )
    include_domains: list[str] = Field(default=[], title="Only these domains")
    exclude_domains: list[str] = Field(default=[], title="Not these domains")
    answers: bool = Field(
        default=True,
        title="Answers",
        description="A summary for each query, which Tavily's model writes; marked as generated.",
    )
    raw_content: bool = Field(
        default=False, title="Whole pages", description="The text of a page rather than an excerpt."
    )
    forget: bool = Field(
        default=False,
        title="Forget what is no longer found",
        description="Else results stay, as pages drop out of a search for many reasons.",
    )


class WebSearchConnector(Connector[WebSearchConfig], LiveSearch):
    """A page is one document, however many queries find it."""

    base_url = "https://api.tavily.com"
    spec = ConnectorSpec(
        kind="web-search",
        name="Web search (Tavily)",
        description="Pages that standing queries find on the web, and live web search.",
        category=Category.WEB,
        config=WebSearchConfig,
        auth=(token_auth("API key", hint="tvly-…"),),
        capabilities=frozenset({Capability.DELETIONS}),
        documentation_url="https://docs.tavily.com",
        rate_limit="90/minute",
        sync_every_minutes=24 * 60,
    )

    def check(self) -> str:
        """A search for one result, which costs a credit: the API has no cheaper question."""
        self._ask("Groundwork", max_results=1, search_depth="basic", include_answer=False)
        return f"Tavily, {len(self.config.queries)} standing queries"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every query anew. One that fails is a warning, unless they all do."""
        met: set[str] = set()
        failed: list[RemoteError] = []
        for query in self.config.queries:
            try:
                answer = self._ask(query)
            except (CredentialsError, RateLimitedError):
                raise
            except RemoteError as error:
                failed.append(error)
                yield Notice(f"The query {query!r} failed. {error.message}")
                continue
            for record in self._records(query, answer):
                if record.external_id not in met:
                    met.add(record.external_id)
                    yield record
            yield Checkpoint({})
        if failed and len(failed) == len(self.config.queries):
            raise failed[-1]
        if self.config.forget and not failed:
            yield Complete()

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """The web, within the configured topic, age and domains."""
        if not query.strip():
            raise InvalidInputError("There is nothing to search for.")
        most = min(max(limit, 1), _MOST_RESULTS)
        answer = self._ask(query, max_results=most, include_answer=False)
        return [
            LiveHit(
                external_id=str(result["url"]),
                title=str(result.get("title") or result["url"]),
                text=_text(result),
                url=str(result["url"]),
                metadata=_facts(query, result),
            )
            for result in _results(answer)
        ][:limit]

    def _ask(self, query: str, **changes: Any) -> Mapping[str, Any]:
        config = self.config
        body = {
            "query": query,
            "max_results": config.max_results,
            "search_depth": config.depth,
            "topic": config.topic,
            "include_answer": config.answers,
            "include_raw_content": "markdown" if config.raw_content else False,
            "include_images": False,
            "include_domains": config.include_domains,
            "exclude_domains": config.exclude_domains,
            **({"time_range": config.time_range} if config.time_range else {}),
            **changes,
        }
        found: Mapping[str, Any] = self._http.post_json("search", body)
        return found

    def _records(self, query: str, answer: Mapping[str, Any]) -> Iterator[Record]:
        if self.config.answers and answer.get("answer"):
            sources = "\n".join(
                f"- [{one.get('title') or one['url']}]({one['url']})" for one in _results(answer)
            )
            yield Record(
                external_id=f"answer:{query}",
                title=query,
                body=Text(f"{answer['answer']}\n\n{sources}"),
                metadata={"query": query, "generated": True},
            )
        for result in _results(answer):
            yield Record(
                external_id=str(result["url"]),
                title=str(result.get("title") or result["url"]),
                body=Text(_text(result)),
                url=str(result["url"]),
                metadata=_facts(query, result),
            )

    @cached_property
    def _http(self) -> HttpClient:
        return self.context.client(self.base_url)


def _results(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [result for result in answer.get("results") or () if result.get("url")]


def _text(result: Mapping[str, Any]) -> str:
    return str(result.get("raw_content") or result.get("content") or "")


def _facts(query: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a result; not its score, which is another one each time."""
    published = result.get("published_date")
    return {"query": query, **({"published": published} if published else {})}
