"""Golden queries in the admin: saved from the search test, listed, run, changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import AuditEvent, Membership
from accounts.tenancy import tenant_scope
from knowledge.models import Chunk, Document
from knowledge.services.chunks import edit_chunk
from knowledge.services.knowledge_bases import create_knowledge_base
from search.models import GoldenQuery, GoldenRun
from tests.conftest import BrowserFactory
from tests.workers import Workers

TEXT = "The pump P7 needs oil every week."
QUERY = "how often does the pump need oil?"
LIST = "admin:search_goldenquery_changelist"


@pytest.fixture
def document(owner: Membership, workers: Workers, settings: Any, tmp_path: Any) -> Document:
    storage = "django.core.files.storage.FileSystemStorage"
    place = {"BACKEND": storage, "OPTIONS": {"location": str(tmp_path / "originals")}}
    settings.STORAGES = {**settings.STORAGES, "default": place}
    actor = actor_for_member(owner)
    with tenant_scope(owner.tenant_id):
        base = create_knowledge_base(actor=actor, name="Machines")
    return workers.ingest(actor, base, TEXT, "pumps.txt").document


def chunk_of(document: Document) -> Chunk:
    with tenant_scope(document.tenant_id):
        found: Chunk = Chunk.objects.select_related("document", "knowledge_base").get(
            document_id=document.id
        )
    return found


def save(client: Client, document: Document, **facts: str) -> Any:
    return client.post(
        reverse("admin:search_goldenquery_save"),
        {"chunk": str(chunk_of(document).id), "query": QUERY, "strategy": "hybrid", **facts},
        follow=True,
    )


def run(client: Client, document: Document) -> Any:
    where = {"base": str(document.knowledge_base_id), "next": reverse(LIST)}
    return client.post(reverse("admin:search_goldenquery_run"), where, follow=True)


def golden_of(document: Document) -> GoldenQuery:
    with tenant_scope(document.tenant_id):
        found: GoldenQuery = GoldenQuery.objects.get()
    return found


def test_an_editor_saves_a_result(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    client = browser(editor)
    page = reverse("admin:search_test") + "?query=how+often+does+the+pump+need+oil%3F"
    assert "Save as golden" in client.get(page).content.decode()
    answer = save(client, document, next=page)
    assert answer.redirect_chain == [(page, 302)]
    text = answer.content.decode()
    assert "Saved as a golden query of Machines. Found at 1." in text
    assert "Save as golden" not in text, "it is saved already"
    (result,) = answer.context["results"]
    golden = golden_of(document)
    assert result.golden == golden
    assert (golden.quote, golden.status, golden.created_by) == (TEXT, "green", editor.user.email)
    with tenant_scope(editor.tenant_id):
        event = AuditEvent.objects.get(action="golden_query.saved")
    assert (event.actor, event.target) == (editor.user.email, QUERY)


def test_the_filter_of_the_search_is_saved_with_it(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    wanted = '{"field": "title", "op": "eq", "value": "pumps"}'
    client = browser(editor)
    page = client.get(reverse("admin:search_test"), {"query": QUERY, "filter": wanted})
    assert page.context["filter"] == wanted
    save(client, document, filter=page.context["filter"])
    assert golden_of(document).filter == {"field": "title", "op": "eq", "value": "pumps"}


def test_saving_goes_back_to_our_own_pages_only(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    answer = save(browser(editor), document, next="https://evil.example/")
    assert answer.redirect_chain[0] == (reverse("admin:search_test"), 302)


@pytest.mark.parametrize("facts", [{"query": " "}, {"strategy": "magic"}, {"filter": "{"}])
def test_a_refusal_is_a_message(
    browser: BrowserFactory, editor: Membership, document: Document, facts: dict[str, str]
) -> None:
    answer = save(browser(editor), document, **facts)
    (message,) = answer.context["messages"]
    assert message.level_tag == "error"
    with tenant_scope(editor.tenant_id):
        assert not GoldenQuery.objects.exists()


def test_viewers_neither_save_nor_see_them(
    browser: BrowserFactory, owner: Membership, viewer: Membership, document: Document
) -> None:
    save(browser(owner), document)
    client = browser(viewer)
    page = client.get(reverse("admin:search_test"), {"query": QUERY})
    assert not page.context["may_save"]
    assert [result.golden for result in page.context["results"]] == [None]
    assert "Save as golden" not in page.content.decode()
    assert save(client, document).status_code == 403
    assert run(client, document).status_code == 403
    assert client.get(reverse(LIST)).status_code == 403
    assert "golden queries green" not in client.get(reverse("admin:index")).content.decode()


def test_a_stranger_neither_saves_nor_runs(
    browser: BrowserFactory, stranger: Membership, document: Document
) -> None:
    client = browser(stranger)
    assert [message.level_tag for message in save(client, document).context["messages"]] == [
        "error"
    ]
    assert [message.level_tag for message in run(client, document).context["messages"]] == ["error"]
    assert "No golden queries yet" in client.get(reverse(LIST)).content.decode()


def test_posting_needs_the_token_and_nothing_is_saved_by_get(
    owner: Membership, document: Document
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner.user)
    assert save(client, document).status_code == 403
    assert client.get(reverse("admin:search_goldenquery_save")).status_code == 405


def test_the_list_shows_state_and_what_changed(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    client = browser(editor)
    save(client, document)
    text = run(client, document).content.decode()
    assert "1 of 1 golden queries of Machines are green." in text
    assert "1 of 1 golden query green" in text
    assert "Nothing changed in it." in text
    with tenant_scope(editor.tenant_id):
        edit_chunk(actor=actor_for_member(editor), chunk=chunk_of(document), enabled=False)
    text = run(client, document).content.decode()
    assert "0 of 1 golden query green" in text
    assert "Turned red" in text
    assert "Chunk #1, which holds the passage, is switched off." in text
    assert "1 → –" in text
    dashboard = client.get(reverse("admin:index")).content.decode()
    assert "0 of 1 golden query green" in dashboard
    base = reverse("admin:knowledge_knowledgebase_change", args=[document.knowledge_base_id])
    assert "0 of 1 golden query green" in client.get(base).content.decode()


def test_runs_say_what_the_base_has_been_through(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    client = browser(editor)
    assert (
        "No runs yet" in client.get(reverse("admin:search_goldenrun_changelist")).content.decode()
    )
    save(client, document)
    run(client, document)
    with tenant_scope(editor.tenant_id):
        GoldenRun.objects.update(embedding_model="older-model", document_count=3)
        chunk = chunk_of(document)
        edit_chunk(actor=actor_for_member(editor), chunk=chunk, content="Something else.")
    run(client, document)
    with tenant_scope(editor.tenant_id):
        newest = GoldenRun.objects.order_by("-started_at")[0]
    text = client.get(reverse("admin:search_goldenrun_change", args=[newest.id])).content.decode()
    assert f"The embedding model changed from older-model to {newest.embedding_model}." in text
    assert "-2 documents." in text
    assert "edited by hand" in text
    assert "chunk #1 was edited on" in text
    assert "First stood" in text
    listed = client.get(reverse("admin:search_goldenrun_changelist"))
    assert [row.count_changed for row in listed.context["cl"].result_list] == [1, 0]


def test_a_change_is_checked_at_once(
    browser: BrowserFactory, editor: Membership, document: Document
) -> None:
    client = browser(editor)
    save(client, document)
    where = reverse("admin:search_goldenquery_change", args=[golden_of(document).id])
    assert "Found at 1." in client.get(where).content.decode()
    values = {
        "query": QUERY, "strategy": "lexical", "within": "1", "enabled": "on", "note": "weekly",
        "filter": '{"field": "title", "op": "eq", "value": "none"}', "quote": "needs oil",
    }  # fmt: skip
    assert client.post(where, values).status_code == 302
    golden = golden_of(document)
    assert (golden.status, golden.strategy, golden.quote, golden.note) == (
        "red", "lexical", "needs oil", "weekly",
    )  # fmt: skip
    page = client.post(where, {**values, "quote": "needs wine"})
    assert page.status_code == 200, page
    assert page.context["adminform"].form.errors["quote"] == [
        "This text does not stand in the document."
    ]
    delete = reverse("admin:search_goldenquery_delete", args=[golden.id])
    assert client.post(delete, {"post": "yes"}).status_code == 302
    with tenant_scope(editor.tenant_id):
        assert not GoldenQuery.objects.exists()
