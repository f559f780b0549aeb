"""The search test page, the search history and the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from knowledge.models import Document
from knowledge.services.knowledge_bases import create_knowledge_base
from search.models import SearchQuery
from search.services.history import rate_search
from tests.workers import Workers

Browser = Callable[[Membership], Client]
TEXT = "The pump P7 needs <script>alert(1)</script> oil every week."


@pytest.fixture
def document(owner: Membership, workers: Workers, settings: Any, tmp_path: Any) -> Document:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "originals")},
        },
    }
    actor = actor_for_member(owner)
    with tenant_scope(owner.tenant_id):
        base = create_knowledge_base(actor=actor, name="Machines")
    return workers.ingest(actor, base, TEXT, "pumps.txt").document


def ask(client: Client, query: str, **parameters: Any) -> Any:
    return client.get(reverse("admin:search_test"), {"query": query, **parameters})


def test_result_shows_why_it_ranks(
    browser: Browser, viewer: Membership, document: Document
) -> None:
    page = ask(browser(viewer), "pump oil", bases="machines")
    (result,) = page.context["results"]
    assert {leg.name for leg in result.legs} == {"lexical", "vector"}
    text = page.content.decode()
    assert "<mark>pump</mark>" in text
    assert "<script>alert" not in text
    assert f"?chunk={result.chunk.id}" in text


def test_search_is_recorded(browser: Browser, owner: Membership, document: Document) -> None:
    ask(browser(owner), "pump oil", limit="3")
    with tenant_scope(owner.tenant_id):
        recorded = SearchQuery.objects.get()
    assert (recorded.query, recorded.actor) == ("pump oil", "owner@acme.example")
    assert recorded.request["limit"] == 3


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"query": " "}, "query"),
        ({"filter": "{"}, "filter"),
        ({"filter": "[1]"}, "filter"),
        ({"filter": '{"field": "nope", "op": "eq", "value": 1}'}, "filter"),
        ({"limit": "1000"}, "limit"),
        ({"mode": "psychic"}, "mode"),
        ({"bases": "nowhere"}, "bases"),
    ],
)
def test_faults_show_at_their_field(
    browser: Browser,
    viewer: Membership,
    document: Document,
    parameters: dict[str, str],
    field: str,
) -> None:
    page = ask(browser(viewer), **{"query": "pump", **parameters})
    assert page.status_code == 200
    assert field in page.context["form"].errors
    assert page.context["outcome"] is None


def test_viewer_may_not_search_for_others(
    browser: Browser, viewer: Membership, document: Document
) -> None:
    page = ask(browser(viewer), "pump", as_principals="group:sales")
    assert "may not search on behalf of others" in page.content.decode()


def test_file_name_mode(browser: Browser, viewer: Membership, document: Document) -> None:
    page = ask(browser(viewer), "pumps", mode="filename")
    (result,) = page.context["results"]
    assert [leg.name for leg in result.legs] == ["filename"]


def test_nothing_found_is_friendly(
    browser: Browser, stranger: Membership, document: Document
) -> None:
    page = ask(browser(stranger), "pump oil")
    assert page.context["results"] == []
    assert "Nothing was found" in page.content.decode()


def test_history_shows_timings_results_and_feedback(
    browser: Browser, owner: Membership, document: Document
) -> None:
    client = browser(owner)
    ask(client, "pump oil")
    with tenant_scope(owner.tenant_id):
        search = SearchQuery.objects.get()
        rate_search(
            actor=actor_for_member(owner),
            search_id=str(search.id),
            rating="up",
            chunk_id=search.chunk_ids[0],
            comment="Just <b>right</b>",
        )
    listed = client.get(reverse("admin:search_searchquery_changelist"))
    assert "pump oil" in listed.content.decode()
    page = client.get(reverse("admin:search_searchquery_change", args=[search.id]))
    text = page.content.decode()
    assert "Just &lt;b&gt;right" in text
    assert page.context["timings"][-1][0] == "total"
    assert "pumps #1" in text


def test_history_is_for_administrators(
    browser: Browser, editor: Membership, stranger: Membership, document: Document
) -> None:
    url = reverse("admin:search_searchquery_changelist")
    assert browser(editor).get(url).status_code == 403
    assert browser(stranger).get(url).context["cl"].result_count == 0


def test_history_cannot_be_changed(browser: Browser, owner: Membership, document: Document) -> None:
    client = browser(owner)
    ask(client, "pump")
    with tenant_scope(owner.tenant_id):
        search = SearchQuery.objects.get()
    for verb in ("change", "delete"):
        url = reverse(f"admin:search_searchquery_{verb}", args=[search.id])
        assert client.post(url, {"post": "yes"}).status_code == 403


def test_dashboard_of_an_empty_tenant_has_first_steps(browser: Browser, owner: Membership) -> None:
    text = browser(owner).get(reverse("admin:index")).content.decode()
    assert 'id="first-steps"' in text


def test_dashboard_counts_and_lists(
    browser: Browser, owner: Membership, document: Document
) -> None:
    client = browser(owner)
    ask(client, "pump oil")
    page = client.get(reverse("admin:index"))
    assert page.context["dashboard"]["documents"] == 1
    assert "pump oil" in page.content.decode()


def test_dashboard_hides_searches_from_editors(
    browser: Browser, editor: Membership, document: Document
) -> None:
    assert "Last searches" not in browser(editor).get(reverse("admin:index")).content.decode()
