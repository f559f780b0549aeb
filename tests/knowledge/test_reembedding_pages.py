"""Changing the embedding model by API and in the admin."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase, ReEmbedding
from knowledge.services import reembedding_work
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.conftest import ApiFactory, BrowserFactory
from tests.knowledge.embedding_server import DIMENSIONS, EmbeddingServer
from tests.workers import Workers

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

LOCAL = "multilingual-e5-small"
REMOTE = "openai/loopback"
ADDRESS = "/api/v1/knowledge-bases/papers/re-embedding/"


@pytest.fixture(autouse=True)
def _short(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding_work, "SLICE", 1)
    monkeypatch.setattr("time.sleep", lambda _: None)
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "originals")},
        },
    }


@pytest.fixture
def papers(owner: Membership, workers: Workers, server: EmbeddingServer) -> KnowledgeBase:
    """Two chunks with vectors of the local model."""
    with tenant_scope(owner.tenant_id):
        base = create_knowledge_base(actor=actor_for_member(owner), name="Papers")
        KnowledgeBase.objects.filter(id=base.id).update(embedding_model=LOCAL)
    for text in ("Herons wade.", "发票保存十年。"):
        workers.ingest(actor_for_member(owner), base, text, f"{text}.txt")
    return base


def _page(base: KnowledgeBase, part: str = "") -> str:
    return reverse(f"admin:knowledge_knowledgebase_embedding_model{part}", args=[base.id])


def test_available_models_are_listed(api: ApiFactory, server: EmbeddingServer) -> None:
    answer = api("read").get("/api/v1/embedding-models/").json()
    assert answer["results"] == [
        {"name": REMOTE, "dimensions": DIMENSIONS, "max_tokens": 512, "default": True},
        {"name": LOCAL, "dimensions": 384, "max_tokens": answer["results"][1]["max_tokens"],
         "default": False},
    ]  # fmt: skip


def test_a_change_from_start_to_roll_back(
    api: ApiFactory, papers: KnowledgeBase, workers: Workers
) -> None:
    client = api("read", "write")
    assert client.get(ADDRESS).status_code == 404
    with workers.commits():
        answer = client.post(ADDRESS, {"embedding_model": REMOTE}, format="json")
    assert answer.status_code == 202
    body = answer.json()
    assert (body["status"], body["from_model"], body["to_model"]) == ("queued", LOCAL, REMOTE)
    workers.step()
    workers.step()
    body = client.get(ADDRESS).json()
    assert body["status"] == "running"
    assert (body["progress"]["done"], body["progress"]["total"]) == (1, 2)
    assert body["progress"]["rate_per_s"] > 0
    assert body["progress"]["remaining_s"] >= 0
    workers.drain()
    body = client.get(ADDRESS).json()
    assert (body["status"], body["roll_back_to"]) == ("switched", LOCAL)
    base = client.get("/api/v1/knowledge-bases/papers/").json()
    assert base["embedding_model"] == REMOTE
    body = client.post(f"{ADDRESS}roll-back/").json()
    assert (body["status"], body["to_model"]) == ("switched", LOCAL)
    assert client.get("/api/v1/knowledge-bases/papers/").json()["embedding_model"] == LOCAL


def test_conflicts_and_wrong_input_are_problem_documents(
    api: ApiFactory, papers: KnowledgeBase, workers: Workers, settings: Any
) -> None:
    client = api("read", "write")
    for wrong in ({"embedding_model": "openai/unknown"}, {"embedding_model": LOCAL}, {}):
        answer = client.post(ADDRESS, wrong, format="json")
        assert answer.status_code == 400
        assert [fault["field"] for fault in answer.json()["errors"]] == ["embedding_model"]
    assert client.delete(ADDRESS).status_code == 409
    assert client.post(f"{ADDRESS}roll-back/").status_code == 409
    assert client.post(ADDRESS, {"embedding_model": REMOTE}, format="json").status_code == 202
    answer = client.post(ADDRESS, {"embedding_model": REMOTE}, format="json")
    assert answer.status_code == 409
    assert answer["Content-Type"] == "application/problem+json"
    assert client.delete(ADDRESS).json()["status"] == "cancelled"
    settings.GROUNDWORK_EMBED_API_KEY = "wrong"
    answer = client.post(ADDRESS, {"embedding_model": REMOTE}, format="json")
    assert answer.status_code == 502
    assert answer.json()["detail"].startswith(f"The embedding model {REMOTE} cannot be used")


def test_the_page_starts_shows_and_rolls_back(
    browser: BrowserFactory, editor: Membership, papers: KnowledgeBase, workers: Workers
) -> None:
    client = browser(editor)
    settings_page = client.get(reverse("admin:knowledge_knowledgebase_change", args=[papers.id]))
    assert _page(papers) in settings_page.content.decode()
    page = client.get(_page(papers)).content.decode()
    assert f"{REMOTE} ({DIMENSIONS} numbers a vector, reads up to 512 tokens)" in page
    with workers.commits():
        answer = client.post(_page(papers), {"do": "start", "embedding_model": REMOTE})
    assert answer.status_code == 302
    workers.step()
    workers.step()
    answer = client.get(_page(papers, "_state"))
    assert 'max="2" value="1"' in answer.content.decode()
    assert "HX-Refresh" not in answer
    workers.drain()
    assert client.get(_page(papers, "_state"))["HX-Refresh"] == "true"
    assert f"Roll back to {LOCAL}" in client.get(_page(papers)).content.decode()
    page = client.post(_page(papers), {"do": "roll_back"}, follow=True).content.decode()
    assert f"Search uses {LOCAL} again." in page


def test_the_page_says_what_is_wrong_with_a_model(
    browser: BrowserFactory, editor: Membership, papers: KnowledgeBase, settings: Any
) -> None:
    settings.GROUNDWORK_EMBED_API_KEY = "wrong"
    client = browser(editor)
    page = client.post(_page(papers), {"do": "start", "embedding_model": REMOTE}).content.decode()
    assert "refuses the API key" in page
    assert client.get(_page(papers)).context["job"] is None


def test_the_page_cancels_and_retries(
    browser: BrowserFactory,
    editor: Membership,
    papers: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
) -> None:
    client = browser(editor)
    with workers.commits():
        client.post(_page(papers), {"do": "start", "embedding_model": REMOTE})
    client.post(_page(papers), {"do": "cancel"})
    assert client.get(_page(papers)).context["job"].status == ReEmbedding.Status.CANCELLED
    with workers.commits():
        client.post(_page(papers), {"do": "start", "embedding_model": REMOTE})
    server.failures = [(401, {})]
    workers.drain()
    page = client.get(_page(papers)).content.decode()
    assert f"{REMOTE}: The embedding service refuses the API key." in page
    assert "Try again from where it stopped" in page


def test_viewers_watch_and_strangers_find_nothing(
    browser: BrowserFactory, viewer: Membership, stranger: Membership, papers: KnowledgeBase
) -> None:
    client = browser(viewer)
    page = client.get(_page(papers))
    assert page.status_code == 200
    assert "Change to another model" not in page.content.decode()
    assert client.post(_page(papers), {"do": "roll_back"}).status_code in {302, 403}
    for data in ({"do": "start", "embedding_model": REMOTE}, {"do": "cancel"}, {"do": "discard"}):
        client.post(_page(papers), data)
    assert client.get(_page(papers)).context["job"] is None
    foreign = browser(stranger)
    for part in ("", "_state"):
        address = reverse(f"admin:knowledge_knowledgebase_embedding_model{part}", args=[papers.id])
        unknown = reverse(f"admin:knowledge_knowledgebase_embedding_model{part}", args=[uuid4()])
        assert foreign.get(address).status_code == foreign.get(unknown).status_code == 404
