"""Standing queries and live search at Tavily, against its API description."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.errors import CredentialsError, InvalidInputError
from connectors.models import Connection
from connectors.native.web_search import WebSearchConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Connect = Callable[..., Connection]
KEY = {"token": "tvly-secret"}


class Web:
    """Pages by the query that finds them."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.failing: dict[str, Refusal] = {}
        self.bodies: list[dict[str, Any]] = []
        vendor.on("POST /search", self.search)

    def search(self, asked: Asked, answer: Any) -> Any:
        self.bodies.append(asked.body)
        query = asked.body["query"]
        if query in self.failing:
            raise self.failing[query]
        some = self.found.get(query, [])[: asked.body["max_results"]]
        said = f"About {query}." if asked.body["include_answer"] else None
        return {**answer, "query": query, "results": some, "answer": said}


def page(name: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"title": name, "url": f"https://{name}.example/", "content": content or f"{name} wades.", "score": 0.5, **more}  # fmt: skip


@pytest.fixture
def web(vendor: StartVendor, monkeypatch: Any) -> Web:
    web = Web(vendor("tavily"))
    monkeypatch.setattr(WebSearchConnector, "base_url", web.vendor.url)
    return web


def connected(connect: Connect, *queries: str, **config: Any) -> Connection:
    return connect(
        "web-search",
        auth_method="token",
        credentials=KEY,
        config={"queries": list(queries), **config},
    )


def test_pages_and_answers_become_documents(web: Web, connect: Connect, syncs: Syncs) -> None:
    web.found = {
        "苍鹭": [page("heron", "苍鹭涉水。"), page("both")],
        "storks": [page("both"), page("stork")],
    }
    run = syncs.run(connected(connect, "苍鹭", "storks"))
    assert (run.status, run.inserted) == ("succeeded", 5)
    documents = syncs.documents()
    assert set(documents) == {
        "answer:苍鹭", "answer:storks", "https://heron.example/", "https://both.example/", "https://stork.example/",
    }  # fmt: skip
    assert documents["https://heron.example/"].source_uri == "https://heron.example/"
    assert documents["https://both.example/"].metadata["query"] == "苍鹭", (
        "of the first that found it"
    )
    assert documents["answer:storks"].metadata["generated"] is True


def test_the_options_are_asked_for(web: Web, connect: Connect, syncs: Syncs) -> None:
    web.found = {"herons": [page("heron", raw_content="# Herons\n\nThe whole page.")]}
    connection = connected(
        connect, "herons", max_results=7, depth="advanced", topic="news", time_range="week",
        include_domains=["a.example"], exclude_domains=["b.example"], answers=False, raw_content=True,
    )  # fmt: skip
    syncs.run(connection)
    assert web.bodies == [{
        "query": "herons", "max_results": 7, "search_depth": "advanced", "topic": "news", "time_range": "week",
        "include_domains": ["a.example"], "exclude_domains": ["b.example"], "include_answer": False,
        "include_raw_content": "markdown", "include_images": False,
    }]  # fmt: skip
    assert set(syncs.documents()) == {"https://heron.example/"}
    with syncs.documents()["https://heron.example/"].original.open() as file:
        assert file.read() == b"# Herons\n\nThe whole page."


def test_one_failing_query_does_not_lose_the_others(
    web: Web, connect: Connect, syncs: Syncs
) -> None:
    web.found = {"herons": [page("heron")], "storks": [page("stork")]}
    connection = connected(connect, "herons", "storks", answers=False, forget=True)
    syncs.run(connection)
    web.failing = {"herons": Refusal(400, {"detail": {"error": "Query is too long."}})}
    web.found["storks"] = [page("stork", "Storks stand."), page("egret")]
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.updated, run.deleted) == ("partial", 1, 1, 0)
    assert "'herons' failed" in run.warnings[0]
    web.failing["storks"] = Refusal(432, {"detail": {"error": "Plan limit."}})
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "remote_rejected")
    assert len(syncs.documents()) == 3
    web.failing.clear()
    web.found["storks"] = [page("egret")]
    assert syncs.run(connection).deleted == 1, "forgotten, as it was asked for"


def test_results_stay_unless_asked_otherwise(web: Web, connect: Connect, syncs: Syncs) -> None:
    web.found = {"herons": [page("heron")]}
    connection = connected(connect, "herons", answers=False)
    syncs.run(connection)
    web.found = {"herons": [page("egret")]}
    assert syncs.run(connection).deleted == 0
    assert len(syncs.documents()) == 2


def test_a_refused_key_and_a_busy_service(web: Web, connect: Connect, syncs: Syncs) -> None:
    connection = connected(connect, "herons")
    web.failing = {"herons": Refusal(401, {"detail": {"error": "Unauthorized"}})}
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "remote_credentials")
    web.failing = {"herons": Refusal(429, headers={"Retry-After": "300"})}
    assert syncs.run(connection).status == "queued"


def test_check_and_live_search(web: Web) -> None:
    web.found = {"herons": [page("heron"), page("egret"), page("stork")]}
    waits: list[float] = []
    config = {"queries": ["a"], "topic": "news"}
    connector = make_connector(WebSearchConnector, config, KEY, pause=waits.append)
    hits = connector.search("herons", 2)
    assert [(hit.title, hit.text) for hit in hits] == [("heron", "heron wades."), ("egret", "egret wades.")]  # fmt: skip
    assert (web.bodies[0]["topic"], web.bodies[0]["max_results"]) == ("news", 2)
    web.vendor.refuse_next(429, Retry_After="2")
    assert connector.check() == "Tavily, 1 standing queries"
    assert waits == [2.0]
    with pytest.raises(InvalidInputError):
        connector.search(" ", 2)
    web.vendor.refuse_next(401)
    with pytest.raises(CredentialsError):
        connector.check()
