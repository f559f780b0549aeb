"""The gallery, and the forms by which sources are connected and changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts.access import actor_for_member
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from connectors.models import Connection
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.connectors.admin_pages import (  # noqa: F401 - fixtures are found by their names
    EVIL,
    SECRET,
    Browser,
    Make,
    actor_fixture,
    body,
    filled,
    form_connector,
    form_url,
    make_fixture,
    only,
    papers_fixture,
    read,
    url,
)


class TestGallery:
    def test_cards_are_searched_by_words(self, browser: Browser, editor: Membership) -> None:
        client, gallery = browser(editor), reverse("admin:connectors_gallery")
        everything = body(client.get(gallery))
        assert form_url("folder") in everything
        assert "表单" in everything
        found = body(client.get(gallery, {"q": "表单 字段"}))
        assert form_url("folder") not in found
        found = body(client.get(gallery, {"q": "permissions 字段"}))
        assert form_url() in found
        assert "No connector fits" in body(client.get(gallery, {"q": EVIL}))

    def test_texts_are_escaped(self, browser: Browser, editor: Membership) -> None:
        page = body(browser(editor).get(reverse("admin:connectors_gallery"), {"q": EVIL}))
        page += body(browser(editor).get(reverse("admin:connectors_gallery")))
        assert "<script>field" not in page
        assert "<b>Forms" not in page
        assert EVIL not in page

    def test_a_broken_connector_leaves_the_others(
        self, browser: Browser, editor: Membership, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr("connectors.admin.gallery.kinds", lambda: ("form", "nothing-like-it"))
        page = browser(editor).get(reverse("admin:connectors_gallery"))
        assert form_url() in body(page)


class TestConnecting:
    def test_without_a_base_it_leads_to_one(self, browser: Browser, editor: Membership) -> None:
        page = body(browser(editor).get(form_url()))
        assert reverse("admin:knowledge_knowledgebase_add") in page

    def test_the_form_shows_titles_and_defaults(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        page = browser(editor).get(form_url())
        form = page.context["form"]
        assert form["config.site"].label == "站点"
        assert form["config.limit"].value() == 10
        assert form["config.comments"].value() is True
        assert form["config.depth"].value() == "flat"
        assert [choice for choice, _ in form.fields["config.state"].choices] == [
            "",
            "open",
            "closed",
        ]
        assert form["knowledge_base"].value() == papers.id
        assert "https://&lt;site&gt;.example" in body(page)
        assert "&lt;i&gt;profile" in body(page)

    def test_values_reach_the_service(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        sent = filled(
            papers, config__labels="a\r\n\r\nb", config__depth="whole_tree", config__state="closed",
            config__headers="Accept-Language: de\nX: a:b", access="fixed", principals="group:eng\n",
            schedule="cron", schedule__cron="0 6 * * 1-5", schedule__time_zone="Asia/Shanghai",
            full_schedule="every", full_schedule__minutes="10080", keeps_capture="on",
        )  # fmt: skip
        answer = browser(editor).post(form_url(), sent)
        made = only(editor)
        assert answer["Location"] == url("change", made)
        assert made.config == {
            "site": "https://forms.example", "limit": 10, "comments": False, "labels": ["a", "b"],
            "depth": "whole_tree", "state": "closed", "headers": {"Accept-Language": "de", "X": "a:b"},
            "places": [],
        }  # fmt: skip
        assert (made.name, made.knowledge_base_id) == ("Our forms", papers.id)
        assert (made.access, made.principals) == ("fixed", ["group:eng"])
        assert made.schedule == {"cron": "0 6 * * 1-5", "time_zone": "Asia/Shanghai"}
        assert made.full_schedule == {"every_minutes": 10080}
        assert made.keeps_capture
        assert made.created_by == editor.user.email

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("config.site", ""),
            ("config.limit", "0"),
            ("config.limit", "many"),
            ("config.labels", "two words"),
            ("config.headers", "no colon"),
            ("config.depth", "abyss"),
            ("name", ""),
            ("principals", "everyone"),
            ("deletion_guard_percent", "0"),
            ("deletion_guard_percent", "101"),
            ("schedule.cron", "often"),
            ("schedule.time_zone", "Middle/Earth"),
            ("schedule.minutes", "0"),
        ],
    )
    def test_faults_show_at_their_field(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase, field: str, value: str
    ) -> None:
        kind = "cron" if field in {"schedule.cron", "schedule.time_zone"} else "every"
        cron = {"schedule.cron": "0 6 * * *", "schedule": kind}
        answer = browser(editor).post(form_url(), {**filled(papers), **cron, field: value})
        assert answer.status_code == 200
        named = "schedule" if field.startswith("schedule.") else field
        assert list(answer.context["form"].errors) == [named]
        with tenant_scope(editor.tenant_id):
            assert not Connection.objects.exists()

    def test_a_name_that_is_taken_is_refused_at_its_field(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase, make: Make
    ) -> None:
        make(name="Our forms")
        answer = browser(editor).post(form_url(), filled(papers))
        assert "name" in answer.context["form"].errors

    def test_the_base_of_another_tenant_is_no_choice(
        self, browser: Browser, stranger: Membership, papers: KnowledgeBase
    ) -> None:
        with tenant_scope(stranger.tenant_id):
            create_knowledge_base(actor=actor_for_member(stranger), name="Theirs")
        answer = browser(stranger).post(form_url(), filled(papers))
        assert "knowledge_base" in answer.context["form"].errors

    def test_an_unknown_connector_is_not_there(self, browser: Browser, editor: Membership) -> None:
        assert browser(editor).get(form_url("nothing")).status_code == 404

    def test_a_source_without_permissions_asks_for_no_mode(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        page = body(browser(editor).get(form_url("scripted")))
        assert '<input type="hidden" name="access" value="source">' in page


class TestCredentials:
    def connect(self, client: Client, base: KnowledgeBase, **more: str) -> Any:
        return client.post(form_url(), filled(base, **more))

    def test_missing_ones_show_at_their_field(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        answer = self.connect(browser(editor), papers, auth_method="keys")
        assert set(answer.context["form"].errors) == {
            "credentials.keys.user",
            "credentials.keys.key",
        }

    def test_secrets_are_never_shown(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        secret = {"auth_method": "keys", "credentials__keys__user": "ana"}
        refused = self.connect(
            client, papers, **secret, credentials__keys__key=SECRET, config__limit="0"
        )
        assert SECRET not in body(refused)
        self.connect(client, papers, **secret, credentials__keys__key=SECRET)
        made = only(editor)
        assert made.credentials == {"user": "ana", "key": SECRET}
        for page in (url("settings", made), url("change", made), url("changelist")):
            assert SECRET not in body(client.get(page))
        assert (
            client.get(url("settings", made)).context["form"]["credentials.keys.user"].value()
            == "ana"
        )

    def test_a_key_keeps_its_lines(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        key = "-----BEGIN KEY-----\r\nabc\r\n-----END KEY-----"
        sent = {"credentials__keys__user": "ana", "credentials__keys__key": key}
        client = browser(editor)
        refused = self.connect(client, papers, auth_method="keys", **sent, name="")
        assert "BEGIN KEY" not in body(refused)
        self.connect(client, papers, auth_method="keys", **sent)
        assert only(editor).credentials["key"] == key.replace("\r\n", "\n")

    def test_an_empty_secret_stays_as_it_is(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        keys = {"auth_method": "keys", "credentials__keys__user": "ana"}
        self.connect(client, papers, **keys, credentials__keys__key=SECRET)
        made = only(editor)
        changed = {**keys, "credentials__keys__user": "bo", "credentials__keys__phrase": "hush"}
        answer = client.post(url("settings", made), filled(**changed))
        assert answer.status_code == 302, answer.context["form"].errors
        assert read(made).credentials == {"user": "bo", "key": SECRET, "phrase": "hush"}
        client.post(url("settings", made), filled(**keys, credentials__keys__key="other"))
        assert read(made).credentials["key"] == "other"

    def test_another_method_forgets_the_old_credentials(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        self.connect(client, papers, auth_method="token", credentials__token__token=SECRET)
        made = only(editor)
        assert made.credentials == {"token": SECRET}
        answer = client.post(url("settings", made), filled(auth_method="keys"))
        assert "credentials.keys.key" in answer.context["form"].errors
        client.post(url("settings", made), filled(auth_method="none"))
        assert (read(made).auth_method, read(made).credentials) == ("none", {})

    def test_new_credentials_make_a_waiting_connection_active(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        self.connect(client, papers, auth_method="token", credentials__token__token=SECRET)
        made = only(editor)
        with tenant_scope(editor.tenant_id):
            waiting = Connection.Status.NEEDS_AUTHORISATION
            Connection.objects.update(status=waiting, status_reason=EVIL)
        page = body(client.get(url("change", made)))
        assert "Needs authorisation" in page
        assert EVIL not in page
        client.post(url("settings", made), filled(auth_method="token"))
        assert read(made).status == waiting, "nothing was entered"
        same = filled(auth_method="token", credentials__token__token=SECRET)
        client.post(url("settings", made), same)
        assert read(made).status == Connection.Status.ACTIVE

    def test_a_sign_in_asks_only_for_the_client(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase, settings: Any
    ) -> None:
        client = browser(editor)
        page = client.get(form_url())
        names = [
            name for name in page.context["form"].fields if name.startswith("credentials.oauth")
        ]
        asked = ["client_id", "client_secret", "hook_secret"]
        assert names == [f"credentials.oauth.{name}" for name in asked]
        assert "/connect/oauth/callback/" in body(page)
        assert "You sign in at the source after saving" in body(page)
        answer = self.connect(client, papers, auth_method="oauth")
        assert "credentials.oauth.client_id" in answer.context["form"].errors
        settings.GROUNDWORK_OAUTH_CLIENTS = {"form": ("id", "secret")}
        self.connect(client, papers, auth_method="oauth")
        made = only(editor)
        assert made.credentials == {}
        assert "Nobody has signed in" in body(client.get(url("change", made)))

    def test_tokens_stay_with_their_client(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        own = {"auth_method": "oauth", "credentials__oauth__client_id": "ours"}
        self.connect(client, papers, **own, credentials__oauth__client_secret=SECRET)
        made = only(editor)
        tokens = {
            "client_id": "ours",
            "client_secret": SECRET,
            "access_token": "a",
            "hook_secret": "h",
            "refresh_token": "r",
        }
        with tenant_scope(editor.tenant_id):
            made.credentials = tokens
            made.save()
        client.post(url("settings", made), filled(**own, config__limit="5"))
        assert read(made).credentials == tokens
        assert "Nobody has signed in" not in body(client.get(url("change", made)))
        own["credentials__oauth__client_id"] = "others"
        client.post(url("settings", made), filled(**own, credentials__oauth__client_secret="s"))
        kept = {"client_id": "others", "client_secret": "s", "hook_secret": "h"}
        assert read(made).credentials == kept

    def test_the_button_leads_to_the_sign_in(
        self, browser: Browser, editor: Membership, make: Make, monkeypatch: Any
    ) -> None:
        made = make("form", config={"site": "x"}, auth_method="oauth")
        monkeypatch.setattr(
            "connectors.admin.health.reverse", lambda name, args: f"/sign-in/{name}/{args[0]}/"
        )
        page = body(browser(editor).get(url("change", made)))
        assert f"/sign-in/connectors_oauth_start/{made.id}/" in page

    def test_without_such_an_address_there_is_no_button(
        self, browser: Browser, editor: Membership, make: Make, monkeypatch: Any
    ) -> None:
        def missing(name: str, args: Any) -> str:
            raise NoReverseMatch

        made = make("form", config={"site": "x"}, auth_method="oauth")
        monkeypatch.setattr("connectors.admin.health.reverse", missing)
        page = body(browser(editor).get(url("change", made)))
        assert "Nobody has signed in" in page
        assert "Sign in</a>" not in page


class TestSettings:
    def test_only_what_differs_is_changed(
        self, browser: Browser, editor: Membership, papers: KnowledgeBase
    ) -> None:
        client = browser(editor)
        client.post(form_url(), filled(papers, config__comments="on"))
        made = only(editor)
        with tenant_scope(editor.tenant_id):
            Connection.objects.update(cursor={"at": 1})
        answer = client.post(url("settings", made), filled(config__comments="on", name="Renamed"))
        assert answer.status_code == 302
        assert (read(made).name, read(made).cursor) == ("Renamed", {"at": 1})
        client.post(url("settings", made), filled(config__limit="3"))
        assert (read(made).config["limit"], read(made).cursor) == (3, {})

    def test_what_is_stored_is_shown(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made = make(
            "form", name=EVIL, config={"site": EVIL, "labels": ["a", EVIL], "headers": {"A": "b"}},
            schedule={"cron": "5 4 * * *", "time_zone": "Europe/Berlin"},
        )  # fmt: skip
        page = browser(editor).get(url("settings", made))
        form = page.context["form"]
        assert form["config.labels"].value() == f"a\n{EVIL}"
        assert (form["schedule"].value(), form["schedule.cron"].value()) == ("cron", "5 4 * * *")
        assert form["full_schedule"].value() == "off"
        assert "A: b" in body(page)
        assert EVIL not in body(page)

    def test_faults_leave_the_connection_as_it_was(
        self, browser: Browser, editor: Membership, make: Make
    ) -> None:
        made = make("form", name="Old", config={"site": "x"})
        answer = browser(editor).post(
            url("settings", made), filled(name="New", config__labels="two words")
        )
        assert "config.labels" in answer.context["form"].errors
        assert "Settings of Old" in body(answer)
        assert read(made).name == "Old"
