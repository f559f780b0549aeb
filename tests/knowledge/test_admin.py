"""Bases, documents and chunks as people keep them in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import Membership
from accounts.tenancy import new_id, tenant_scope
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.workers import Workers

Browser = Callable[[Membership], Client]
JSON = {"HTTP_ACCEPT": "application/json"}
BASE_FIELDS = {
    "name": "Papers",
    "slug": "",
    "description": "",
    "status": "active",
    "language": "auto",
    "chunk_size": "256",
    "chunk_overlap": "32",
    "chunk_separator": "",
}


@pytest.fixture(autouse=True)
def _originals(settings: Any, tmp_path: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "originals")},
        },
    }


@pytest.fixture
def papers(owner: Membership) -> KnowledgeBase:
    return make_base(owner, "Papers")


@pytest.fixture
def document(owner: Membership, papers: KnowledgeBase, workers: Workers) -> Document:
    text = "# Pumps\n\nThe pump P7 needs oil <b>weekly</b>.\n\n# Valves\n\nClose valve V3 first.\n"
    return workers.ingest(actor_for_member(owner), papers, text, "pumps.md").document


def make_base(member: Membership, name: str) -> KnowledgeBase:
    with tenant_scope(member.tenant_id):
        return create_knowledge_base(actor=actor_for_member(member), name=name)


def upload(client: Client, base: KnowledgeBase, *files: tuple[str, bytes], **headers: Any) -> Any:
    sent = [SimpleUploadedFile(name, content) for name, content in files]
    data = {"base": str(base.id), "principals": "public", "file": sent}
    return client.post(reverse("admin:knowledge_document_upload"), data, **headers)


def change_url(row: Any, kind: str) -> str:
    return reverse(f"admin:knowledge_{kind}_change", args=[row.id])


def read(member: Membership, model: type[Any], pk: UUID) -> Any:
    with tenant_scope(member.tenant_id):
        return model.objects.get(id=pk)


def first_chunk(member: Membership, document: Document) -> Chunk:
    with tenant_scope(member.tenant_id):
        chunk: Chunk = document.chunks.order_by("ordinal")[0]
        return chunk


class TestKnowledgeBases:
    def test_empty_tenant_is_told_what_to_do(self, browser: Browser, owner: Membership) -> None:
        page = browser(owner).get(reverse("admin:knowledge_knowledgebase_changelist"))
        assert "Create a knowledge base" in page.content.decode()

    def test_created_through_the_service(self, browser: Browser, editor: Membership) -> None:
        answer = browser(editor).post(reverse("admin:knowledge_knowledgebase_add"), BASE_FIELDS)
        assert answer.status_code == 302
        with tenant_scope(editor.tenant_id):
            assert KnowledgeBase.objects.get().slug == "papers"

    def test_impossible_chunking_shows_at_the_form(
        self, browser: Browser, editor: Membership
    ) -> None:
        fields = {**BASE_FIELDS, "chunk_size": "100", "chunk_overlap": "100"}
        answer = browser(editor).post(reverse("admin:knowledge_knowledgebase_add"), fields)
        assert answer.status_code == 200
        assert answer.context["adminform"].form.errors
        with tenant_scope(editor.tenant_id):
            assert not KnowledgeBase.objects.exists()

    def test_taken_slug_is_refused(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        fields = {**BASE_FIELDS, "slug": papers.slug}
        answer = browser(editor).post(reverse("admin:knowledge_knowledgebase_add"), fields)
        assert answer.status_code == 200
        assert "already" in str(answer.context["adminform"].form.errors)

    def test_list_counts_in_one_query(
        self,
        browser: Browser,
        owner: Membership,
        document: Document,
        django_assert_max_num_queries: Any,
    ) -> None:
        client = browser(owner)
        for number in range(5):
            make_base(owner, f"Base {number}")
        with django_assert_max_num_queries(16):
            page = client.get(reverse("admin:knowledge_knowledgebase_changelist"))
        assert page.status_code == 200

    def test_deletion_says_how_much_goes(
        self, browser: Browser, owner: Membership, papers: KnowledgeBase, document: Document
    ) -> None:
        url = reverse("admin:knowledge_knowledgebase_delete", args=[papers.id])
        client = browser(owner)
        assert "1 document" in client.get(url).content.decode()
        assert client.post(url, {"post": "yes"}).status_code == 302
        with tenant_scope(owner.tenant_id):
            assert not Document.objects.exists()

    def test_viewer_may_not_add(self, browser: Browser, viewer: Membership) -> None:
        url = reverse("admin:knowledge_knowledgebase_add")
        assert browser(viewer).post(url, BASE_FIELDS).status_code == 403


class TestUpload:
    def test_without_a_base_it_leads_to_one(self, browser: Browser, editor: Membership) -> None:
        page = browser(editor).get(reverse("admin:knowledge_document_upload"))
        assert reverse("admin:knowledge_knowledgebase_add") in page.content.decode()

    def test_bad_file_leaves_the_others_whole(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        page = upload(browser(editor), papers, ("good.txt", b"words"), ("empty.txt", b""))
        text = page.content.decode()
        assert "good.txt" in text
        assert "empty.txt is empty" in text
        with tenant_scope(editor.tenant_id):
            assert Document.objects.get().filename == "good.txt"

    def test_script_gets_each_files_result(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        good = upload(client, papers, ("good.txt", b"words"), **JSON)
        assert good.json()["changing"]
        bad = upload(client, papers, ("empty.txt", b""), **JSON)
        assert (bad.status_code, "empty" in bad.json()["error"]) == (400, True)

    def test_file_names_are_escaped(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        page = upload(browser(editor), papers, ("<script>alert(1)<x>.txt", b"words"))
        assert "<script>alert(1)" not in page.content.decode()

    def test_viewer_may_not(
        self, browser: Browser, viewer: Membership, papers: KnowledgeBase
    ) -> None:
        assert upload(browser(viewer), papers, ("good.txt", b"words")).status_code == 403

    def test_base_of_another_tenant_is_no_choice(
        self, browser: Browser, stranger: Membership, papers: KnowledgeBase
    ) -> None:
        answer = upload(browser(stranger), papers, ("good.txt", b"words"), **JSON)
        assert answer.status_code == 400


class TestDocuments:
    def test_list_shows_state_and_coverage(
        self, browser: Browser, viewer: Membership, document: Document
    ) -> None:
        text = browser(viewer).get(reverse("admin:knowledge_document_changelist")).content.decode()
        assert "Ready" in text
        assert "of 4 paragraphs" in text

    def test_progress_tells_the_stage(
        self, browser: Browser, owner: Membership, papers: KnowledgeBase, workers: Workers
    ) -> None:
        added = workers.add(actor_for_member(owner), papers, "some words")
        url = reverse("admin:knowledge_document_progress")
        client = browser(owner)
        ids = {"id": [str(added.document.id), "no-id", str(new_id())]}
        assert list(client.get(url, ids).json()["documents"]) == [str(added.document.id)]
        workers.step()
        state = client.get(url, ids).json()["documents"][str(added.document.id)]
        assert "Already found by its words" in state["html"]
        workers.drain()
        state = client.get(url, ids).json()["documents"][str(added.document.id)]
        assert (state["status"], state["changing"]) == ("ready", False)

    def test_page_puts_text_beside_chunks(
        self, browser: Browser, viewer: Membership, document: Document
    ) -> None:
        chunk = first_chunk(viewer, document)
        page = browser(viewer).get(change_url(document, "document"), {"chunk": str(chunk.id)})
        reading = page.context["reading"]
        assert reading["chosen"] == chunk
        assert reading["text"][chunk.start : chunk.end].strip()
        assert "<b>weekly" not in page.content.decode()

    def test_long_text_is_shown_in_parts(
        self, browser: Browser, viewer: Membership, document: Document, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr("knowledge.admin.document_page.PAGE_CHARS", 20)
        client, url = browser(viewer), change_url(document, "document")
        whole = read(viewer, Document, document.id).extracted_text
        assert client.get(url, {"part": "2"}).context["reading"]["text"] == whole[20:40]
        assert client.get(url, {"part": "999"}).status_code == 200

    def test_facts_are_changed_through_the_service(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        facts = {"title": "Pump book", "principals": "group:sales\n", "metadata": '{"a": 1}'}
        assert browser(editor).post(change_url(document, "document"), facts).status_code == 302
        changed = read(editor, Document, document.id)
        assert (changed.title, changed.principals) == ("Pump book", ["group:sales"])
        assert first_chunk(editor, document).principals == ["group:sales"]
        history = reverse("admin:knowledge_document_history", args=[document.id])
        assert browser(editor).get(history).status_code == 200

    @pytest.mark.parametrize(
        ("field", "value"),
        [("principals", "everyone"), ("metadata", "[1]"), ("metadata", "{"), ("title", " ")],
    )
    def test_faults_show_at_their_field(
        self, browser: Browser, editor: Membership, document: Document, field: str, value: str
    ) -> None:
        facts = {"title": "Pumps", "principals": "public", "metadata": "{}", field: value}
        answer = browser(editor).post(change_url(document, "document"), facts)
        assert field in answer.context["adminform"].form.errors

    def test_original_is_an_attachment(
        self, browser: Browser, viewer: Membership, stranger: Membership, document: Document
    ) -> None:
        url = reverse("admin:knowledge_document_original", args=[document.id])
        answer = browser(viewer).get(url)
        assert answer["Content-Disposition"].startswith("attachment")
        assert b"".join(answer).startswith(b"# Pumps")
        assert browser(stranger).get(url).status_code == 404

    def test_restricted_document_is_not_there_for_others(
        self, browser: Browser, editor: Membership, viewer: Membership, document: Document
    ) -> None:
        facts = {"title": "Pumps", "principals": "group:x", "metadata": "{}"}
        browser(editor).post(change_url(document, "document"), facts)
        url = reverse("admin:knowledge_document_original", args=[document.id])
        assert browser(viewer).get(url).status_code == 404
        page = browser(viewer).get(reverse("admin:knowledge_document_changelist"))
        assert "No documents yet" in page.content.decode()

    def test_actions_go_through_the_services(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        client = browser(editor)
        url = reverse("admin:knowledge_document_changelist")
        picked = {"_selected_action": str(document.id)}
        assert client.post(url, {"action": "process_again", **picked}).status_code == 302
        assert read(editor, Document, document.id).status == Document.Status.PENDING
        deletion = {"action": "delete_selected", "post": "yes", **picked}
        assert client.post(url, deletion).status_code == 302
        with tenant_scope(editor.tenant_id):
            assert not Document.objects.exists()

    def test_moving_asks_where_to(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        client, target = browser(editor), make_base(editor, "Archive")
        picked = {"_selected_action": str(document.id)}
        url = reverse("admin:knowledge_document_changelist")
        assert "Archive" in client.post(url, {"action": "move", **picked}).content.decode()
        move = reverse("admin:knowledge_document_move")
        assert client.post(move, {**picked, "base": ""}).status_code == 200
        assert client.post(move, {**picked, "base": str(target.id)}).status_code == 302
        assert read(editor, Document, document.id).knowledge_base_id == target.id


class TestChunks:
    def test_corrected_and_found(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        chunk = first_chunk(editor, document)
        client = browser(editor)
        change = {"content": "The pump needs grease.\r\nDaily.", "enabled": "on"}
        assert client.post(change_url(chunk, "chunk"), change).status_code == 302
        changed = read(editor, Chunk, chunk.id)
        assert changed.content == "The pump needs grease.\nDaily."
        assert changed.edited_at
        page = client.get(reverse("admin:knowledge_chunk_changelist"), {"q": "grease"})
        assert page.context["cl"].result_count == 1

    def test_empty_content_is_refused_at_the_field(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        chunk = first_chunk(editor, document)
        answer = browser(editor).post(change_url(chunk, "chunk"), {"content": "", "enabled": "on"})
        assert "content" in answer.context["adminform"].form.errors
        assert read(editor, Chunk, chunk.id).content == chunk.content

    def test_switched_off_and_on(
        self, browser: Browser, editor: Membership, document: Document
    ) -> None:
        chunk, client = first_chunk(editor, document), browser(editor)
        url = reverse("admin:knowledge_chunk_changelist")
        for action, enabled in (("switch_off", False), ("switch_on", True)):
            client.post(url, {"action": action, "_selected_action": str(chunk.id)})
            assert read(editor, Chunk, chunk.id).enabled is enabled

    def test_neither_added_nor_deleted(
        self, browser: Browser, owner: Membership, document: Document
    ) -> None:
        chunk, client = first_chunk(owner, document), browser(owner)
        assert client.get(reverse("admin:knowledge_chunk_add")).status_code == 403
        url = reverse("admin:knowledge_chunk_delete", args=[chunk.id])
        assert client.post(url, {"post": "yes"}).status_code == 403

    def test_viewer_reads_only(
        self, browser: Browser, viewer: Membership, document: Document
    ) -> None:
        url = change_url(first_chunk(viewer, document), "chunk")
        assert browser(viewer).get(url).status_code == 200
        assert browser(viewer).post(url, {"content": "x"}).status_code == 403


@pytest.mark.parametrize("kind", ["knowledgebase", "document", "chunk"])
def test_stranger_finds_nothing(
    browser: Browser, stranger: Membership, owner: Membership, document: Document, kind: str
) -> None:
    rows = {
        "knowledgebase": document.knowledge_base,
        "document": document,
        "chunk": first_chunk(owner, document),
    }
    client = browser(stranger)
    page = client.get(reverse(f"admin:knowledge_{kind}_changelist"))
    assert page.context["cl"].result_count == 0
    assert client.get(change_url(rows[kind], kind)).status_code == 302
