"""The page of a connection, its places, its history, and who sees them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.access import Actor
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from config.errors import CredentialsError
from connectors.admin.health import health_of
from connectors.base import Checkpoint, Complete, Failure, Node
from connectors.models import Connection, SyncItem, SyncRun
from knowledge.models import Document
from tests.connectors.admin_pages import (  # noqa: F401 - fixtures are found by their names
    EVIL,
    JSON,
    Browser,
    Make,
    act,
    actor_fixture,
    body,
    form_connector,
    form_url,
    make_fixture,
    papers_fixture,
    read,
    runs_fixture,
    url,
)
from tests.connectors.conftest import Syncs
from tests.connectors.form_connector import FormConnector
from tests.connectors.scripted import ScriptedConnector, text
from tests.workers import Workers


class TestConnectionPage:
    def test_empty_tenant_is_led_to_the_gallery(self, browser: Browser, editor: Membership) -> None:
        client = browser(editor)
        page = body(client.get(url("changelist")))
        assert "Nothing is connected yet" in page
        assert client.get(url("add"))["Location"] == reverse("admin:connectors_gallery")
        for kind in ("syncrun", "syncitem"):
            page = body(client.get(reverse(f"admin:connectors_{kind}_changelist")))
            assert url("changelist") in page

    def test_a_sync_from_its_start_to_its_end(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs, workers: Workers
    ) -> None:
        made, client = make(name="Notes"), browser(editor)
        ScriptedConnector.script = lambda _self, _cursor: iter(
            [text("a", title=EVIL), Failure("b", f"Cannot be read: {EVIL}"), Checkpoint({"at": 1})]
        )
        assert "Never synced" in body(client.get(url("change", made)))
        with workers.commits():
            page = act(client, made, "sync")
        assert "The sync has been started." in body(page)
        assert "data-changing" in body(page)
        state = client.get(url("state", made)).json()
        assert state["changing"]
        assert "Waiting for a worker" in state["html"]
        runs.work()
        state = client.get(url("state", made)).json()
        assert not state["changing"]
        assert "1 new · 0 changed · 0 the same · 0 deleted · 1 failed" in state["html"]
        page = body(client.get(url("change", made)))
        assert "Partly succeeded" in page
        assert "Retry what failed" in page
        assert EVIL not in page
        assert EVIL not in body(client.get(url("changelist")))

    @pytest.mark.parametrize(
        ("do", "kind"),
        [("sync", "incremental"), ("full", "full"), ("replay", "replay"), ("retry", "retry")],
    )
    def test_buttons_start_runs(
        self, browser: Browser, editor: Membership, make: Make, do: str, kind: str
    ) -> None:
        made, client = make(keeps_capture=True), browser(editor)
        act(client, made, do)
        with tenant_scope(editor.tenant_id):
            run = SyncRun.objects.get()
        assert (run.kind, run.trigger, run.status) == (kind, editor.user.email, "queued")
        assert "is going on" in body(act(client, made, do)), "a second one is refused"
        act(client, made, "cancel")
        with tenant_scope(editor.tenant_id):
            assert SyncRun.objects.get().status == "cancelled"
        assert "No sync is going on" in body(act(client, made, "cancel"))

    def test_pausing_and_resuming(self, browser: Browser, editor: Membership, make: Make) -> None:
        made, client = make(), browser(editor)
        assert "Resume</button>" in body(act(client, made, "pause"))
        assert read(made).status == "paused"
        assert "The connection is paused" in body(act(client, made, "sync"))
        act(client, made, "resume")
        assert read(made).status == "active"
        assert client.post(url("act", made), {"do": "explode"}).status_code == 404
        assert client.get(url("act", made)).status_code == 405

    def test_the_check_gives_a_clear_verdict(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make("form", config={"site": "x"}), browser(editor)
        answer = client.post(url("check", made), **JSON).json()
        assert answer == {"reached": True, "message": "Reached the <b>form</b> site"}
        FormConnector.verdict = CredentialsError(f"Not accepted: {EVIL}")
        answer = client.post(url("check", made), **JSON)
        assert (answer.status_code, answer.json()["reached"]) == (200, False)
        page = body(client.post(url("check", made), follow=True))
        assert "Not accepted" in page
        assert EVIL not in page

    def test_what_is_not_configured_is_named(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made = make("form", config={"site": "x"}, auth_method="token")
        answer = browser(editor).post(url("check", made), **JSON).json()
        assert "credentials.token" in answer["message"]

    def test_tokens_renewed_by_a_failed_check_are_kept(
        self, browser: Browser, editor: Membership, make: Make, monkeypatch: Any
    ) -> None:
        made = make("form", config={"site": "x"})

        def check(self: Any) -> str:
            Connection.objects.filter(id=made.id).update(sealed_credentials="renewed")
            raise CredentialsError("No.")

        monkeypatch.setattr(FormConnector, "check", check)
        browser(editor).post(url("check", made), **JSON)
        assert read(made).sealed_credentials == "renewed"

    def test_held_deletions_wait_for_a_click(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        made, client = make(deletion_guard_percent=10), browser(editor)
        runs.play(made, *(text(f"n{number}") for number in range(25)), Complete())
        runs.play(made, text("n0"), Complete(), kind=SyncRun.Kind.FULL)
        page = body(client.get(url("change", made)))
        assert "24 documents are gone at the source" in page
        assert "24 wait to be deleted" in body(client.get(url("changelist")))
        assert "24 documents were deleted." in body(act(client, made, "approve"))
        assert set(runs.documents()) == {"n0"}
        assert "held-deletions" not in body(client.get(url("change", made)))

    def test_deleting_asks_what_becomes_of_the_documents(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        client = browser(editor)
        for answer, left in (("keep", 1), ("delete", 1)):
            made = make(name=f"{answer} {EVIL}")
            runs.play(made, text(f"doc {answer}"))
            page = body(client.get(url("delete", made)))
            assert "has brought 1 document into Papers" in page
            assert EVIL not in page
            assert "Choose one" in body(client.post(url("delete", made)))
            client.post(url("delete", made), {"documents": answer})
            with tenant_scope(editor.tenant_id):
                assert not Connection.objects.exists()
                assert Document.objects.count() == left
                assert not Document.objects.filter(source_id=made.id).exists()

    def test_a_connection_in_a_run_is_not_deleted(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make(), browser(editor)
        act(client, made, "sync")
        page = client.post(url("delete", made), {"documents": "keep"}, follow=True)
        assert "Cancel it first" in body(page)
        assert read(made).id == made.id

    def test_next_runs_are_told(self, actor: Actor, make: Make) -> None:
        made = make(schedule={"every_minutes": 60}, full_schedule={"cron": "0 6 * * *"})
        with tenant_scope(actor.tenant_id):
            health = health_of(actor, made)
        hour = timezone.now() + timedelta(hours=1)
        assert health.next_changes_at is not None
        assert abs(health.next_changes_at - hour) < timedelta(minutes=1)
        assert isinstance(health.next_full_at, datetime)
        assert (health.next_full_at + timedelta(seconds=30)).hour == 6
        silent = make(name="By hand", schedule={})
        with tenant_scope(actor.tenant_id):
            assert health_of(actor, silent).next_changes_at is None

    def test_a_connector_that_is_gone_leaves_the_page(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make(), browser(editor)
        with tenant_scope(editor.tenant_id):
            Connection.objects.update(connector="gone")
        assert "no such connector any more" in body(client.get(url("change", made)))
        assert client.get(url("changelist")).status_code == 200
        client.post(url("delete", made), {"documents": "keep"})
        with tenant_scope(editor.tenant_id):
            assert not Connection.objects.exists()

    def test_list_needs_as_many_queries_for_many(
        self, browser: Browser, editor: Membership, make: Make, django_assert_max_num_queries: Any
    ) -> None:
        client = browser(editor)
        for number in range(5):
            make(name=f"Source {number}")
        with django_assert_max_num_queries(16):
            assert client.get(url("changelist")).status_code == 200


class TestBrowsing:
    def test_one_level_for_each_request(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make("form", config={"site": "x", "places": ["b"]}), browser(editor)
        FormConnector.tree = {
            "": [Node("a", EVIL, has_children=True), Node("b", "Beta")],
            "a": [Node("a/1", "One", selectable=False)],
        }
        page = body(client.get(url("browse", made)))
        assert EVIL not in page
        assert 'value="b" checked' in page
        assert "One" not in page
        level = client.get(url("browse", made), {"parent": "a"}, **JSON).json()
        assert [(node["id"], node["selectable"]) for node in level["nodes"]] == [("a/1", False)]

    def test_a_closed_place_says_why(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make("form", config={"site": "x"}), browser(editor)
        level = client.get(url("browse", made), {"parent": "closed"}, **JSON)
        assert (level.status_code, level.json()["error"]) == (200, "This place is <closed>.")
        assert "&lt;closed&gt;" in body(client.get(url("browse", made), {"parent": "closed"}))

    def test_what_is_chosen_goes_into_the_configuration(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made, client = make("form", config={"site": "x", "places": ["b"]}), browser(editor)
        client.post(url("browse", made), {"place": ["a", "c", "a"]})
        assert read(made).config["places"] == ["a", "c"]
        client.post(url("browse", made), {})
        assert read(made).config["places"] == []

    def test_without_a_field_there_is_only_looking(
        self, browser: Browser, editor: Membership, make: Make, tmp_path: Any, settings: Any
    ) -> None:
        settings.GROUNDWORK_LOCAL_FOLDERS = [str(tmp_path)]
        (tmp_path / "inner").mkdir()
        made, client = make("folder", config={"path": str(tmp_path)}), browser(editor)
        page = body(client.get(url("browse", made)))
        assert "inner" in page
        assert 'type="checkbox"' not in page
        client.post(url("browse", made), {"place": ["inner"]})
        assert "places" not in read(made).config


class TestHistory:
    def test_runs_tell_counts_warnings_and_errors(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        client = browser(editor)
        run = runs.play(make(), text("a"), Failure("b", EVIL))
        with tenant_scope(editor.tenant_id):
            SyncRun.objects.update(warnings=[f"Careful {EVIL}"], error=f"Broken {EVIL}")
        for address in (
            reverse("admin:connectors_syncrun_changelist"),
            reverse("admin:connectors_syncrun_change", args=[run.id]),
        ):
            page = body(client.get(address))
            assert "Broken &lt;script&gt;" in page
            assert EVIL not in page
        assert "Careful &lt;script&gt;" in page
        assert "1 new" in page
        filtered = reverse("admin:connectors_syncrun_changelist") + "?status__exact=cancelled"
        assert client.get(filtered).context["cl"].result_count == 0
        state = client.get(reverse("admin:connectors_syncrun_state", args=[run.id])).json()
        assert (state["changing"], EVIL in state["html"]) == (False, False)

    def test_an_unfinished_run_can_be_cancelled_on_its_page(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        made, client = make(), browser(editor)
        run = runs.start(made)
        page = body(client.get(reverse("admin:connectors_syncrun_change", args=[run.id])))
        assert 'id="cancel-run"' in page
        assert "data-changing" in page

    def test_history_is_read_only(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        run, client = runs.play(make(), text("a")), browser(editor)
        assert client.get(reverse("admin:connectors_syncrun_add")).status_code == 403
        change = reverse("admin:connectors_syncrun_change", args=[run.id])
        assert client.post(change, {"status": "failed"}).status_code == 403
        delete = reverse("admin:connectors_syncrun_delete", args=[run.id])
        assert client.post(delete, {"post": "yes"}).status_code == 403

    def test_items_lead_to_documents_and_are_retried(
        self, browser: Browser, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        made, client = make(name=EVIL), browser(editor)
        runs.play(made, text("a", title=EVIL), Failure("b", f"Too large {EVIL}"))
        items = reverse("admin:connectors_syncitem_changelist")
        page = body(client.get(items))
        document = runs.documents()["a"]
        assert reverse("admin:knowledge_document_change", args=[document.id]) in page
        assert EVIL not in page
        failed = client.get(items, {"status__exact": "failed"})
        assert failed.context["cl"].result_count == 1
        assert "Too large" in body(failed)
        with tenant_scope(editor.tenant_id):
            ids = {item.external_id: str(item.id) for item in SyncItem.objects.all()}
        detail = reverse("admin:connectors_syncitem_change", args=[ids["b"]])
        assert EVIL not in body(client.get(detail))
        retry = {"action": "retry", "_selected_action": [ids["a"], ids["b"]]}
        page = body(client.post(items, retry, follow=True))
        assert "are being tried again" in page
        assert EVIL not in page
        with tenant_scope(editor.tenant_id):
            assert SyncRun.objects.order_by("-id")[0].kind == "retry"
        picked = {"action": "retry", "_selected_action": [ids["a"]]}
        assert "Only failed items" in body(client.post(items, picked, follow=True))

    def test_a_document_says_where_it_came_from(
        self, browser: Browser, editor: Membership, viewer: Membership, make: Make, runs: Syncs
    ) -> None:
        made = make()
        runs.play(made, text("a"))
        page = reverse("admin:knowledge_document_change", args=[runs.documents()["a"].id])
        seen = body(browser(editor).get(page))
        assert url("change", made) in seen
        assert "Last seen at the source" in seen
        assert url("change", made) not in body(browser(viewer).get(page))
        listed = reverse("admin:knowledge_document_changelist")
        found = browser(editor).get(listed, {"source_id__exact": str(made.id)})
        assert found.context["cl"].result_count == 1


PAGES = ("change", "settings", "browse", "state", "delete")
KINDS = ("connection", "syncrun", "syncitem")


class TestRights:
    def test_viewers_see_neither_pages_nor_entries(
        self, browser: Browser, viewer: Membership, editor: Membership, make: Make, runs: Syncs
    ) -> None:
        made = make("folder", config={"path": "/nowhere"})
        run, client = runs.start(made), browser(viewer)
        pages = [url(name, made) for name in PAGES]
        pages += [reverse(f"admin:connectors_{kind}_changelist") for kind in KINDS]
        pages += [reverse("admin:connectors_gallery"), form_url(), url("add")]
        pages += [
            reverse(f"admin:connectors_syncrun_{name}", args=[run.id])
            for name in ("change", "state")
        ]
        assert {page: client.get(page).status_code for page in pages} == dict.fromkeys(pages, 403)
        for name in ("act", "check", "settings", "browse", "delete"):
            assert client.post(url(name, made), {"do": "pause"}).status_code == 403
        assert "/admin/connectors/" not in body(client.get(reverse("admin:index")))
        assert "/admin/connectors/" in body(browser(editor).get(reverse("admin:index")))

    def test_stranger_gets_404(
        self, browser: Browser, stranger: Membership, make: Make, runs: Syncs
    ) -> None:
        made = make()
        run, client = runs.start(made), browser(stranger)
        for name in PAGES:
            assert client.get(url(name, made)).status_code == 404
        for name in ("act", "check", "settings", "browse", "delete"):
            assert client.post(url(name, made), {"do": "pause"}).status_code == 404
        assert (
            client.get(reverse("admin:connectors_syncrun_state", args=[run.id])).status_code == 404
        )
        for kind in KINDS:
            page = client.get(reverse(f"admin:connectors_{kind}_changelist"))
            assert page.context["cl"].result_count == 0
        assert read(made).status == "active"

    def test_no_id_is_not_there(self, browser: Browser, editor: Membership) -> None:
        address = reverse("admin:connectors_connection_change", args=["none"])
        assert browser(editor).get(address).status_code == 404
