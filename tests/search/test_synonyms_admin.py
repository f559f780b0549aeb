"""Synonyms in the admin: kept by editors, shown on the search test page."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from accounts.access import actor_for_member
from accounts.models import Membership
from accounts.tenancy import tenant_scope
from knowledge.services.knowledge_bases import create_knowledge_base
from search.models import SynonymSet
from tests.conftest import BrowserFactory
from tests.workers import Workers

LIST = "admin:search_synonymset_changelist"
ADD = "admin:search_synonymset_add"


def kept(member: Membership) -> SynonymSet:
    with tenant_scope(member.tenant_id):
        found: SynonymSet = SynonymSet.objects.select_related("knowledge_base").get()
    return found


def test_an_editor_keeps_synonyms(browser: BrowserFactory, editor: Membership) -> None:
    client = browser(editor)
    page = client.get(reverse(LIST)).content.decode()
    assert "No synonyms yet" in page
    assert "Add synonyms" in page
    values = {"terms": "PTO\r\n annual  leave \r\n\r\n年假", "enabled": "on"}
    assert client.post(reverse(ADD), values).status_code == 302
    synonyms = kept(editor)
    assert synonyms.terms == ["PTO", "annual leave", "年假"]
    assert (synonyms.created_by, synonyms.knowledge_base) == (editor.user.email, None)
    assert "PTO = annual leave = 年假" in client.get(reverse(LIST)).content.decode()
    url = reverse("admin:search_synonymset_change", args=[synonyms.id])
    assert client.get(url).status_code == 200
    assert client.post(url, {**values, "enabled": "", "one_way": "on"}).status_code == 302
    assert (kept(editor).enabled, kept(editor).one_way) == (False, True)
    page = client.get(reverse(LIST)).content.decode()
    assert "PTO → annual leave, 年假" in page
    assert client.get(reverse(LIST) + "?q=annual").status_code == 200
    url = reverse("admin:search_synonymset_delete", args=[synonyms.id])
    assert client.post(url, {"post": "yes"}).status_code == 302
    with tenant_scope(editor.tenant_id):
        assert not SynonymSet.objects.exists()


def test_a_fault_shows_at_its_field(browser: BrowserFactory, editor: Membership) -> None:
    client = browser(editor)
    client.post(reverse(ADD), {"terms": "PTO\nannual leave"})
    for terms in ("alone", "pto\nvacation"):
        answer = client.post(reverse(ADD), {"terms": terms})
        assert "terms" in answer.context["adminform"].form.errors, terms


def test_others_keep_out(
    browser: BrowserFactory, editor: Membership, viewer: Membership, stranger: Membership
) -> None:
    browser(editor).post(reverse(ADD), {"terms": "PTO\nannual leave"})
    assert browser(viewer).get(reverse(LIST)).status_code == 403
    url = reverse("admin:search_synonymset_change", args=[kept(editor).id])
    assert browser(stranger).get(url).status_code == 302, "not there"
    assert "No synonyms yet" in browser(stranger).get(reverse(LIST)).content.decode()


@pytest.fixture
def _originals(settings: Any, tmp_path: Any) -> None:
    storage = "django.core.files.storage.FileSystemStorage"
    place = {"BACKEND": storage, "OPTIONS": {"location": str(tmp_path / "originals")}}
    settings.STORAGES = {**settings.STORAGES, "default": place}


@pytest.mark.usefixtures("_originals")
def test_the_search_test_shows_what_was_added(
    browser: BrowserFactory, editor: Membership, workers: Workers
) -> None:
    client = browser(editor)
    with tenant_scope(editor.tenant_id):
        base = create_knowledge_base(actor=actor_for_member(editor), name="Main")
    workers.ingest(actor_for_member(editor), base, "Annual leave lapses in spring.")
    client.post(reverse(ADD), {"terms": "PTO\nannual leave", "enabled": "on"})
    page = client.get(reverse("admin:search_test") + "?query=PTO&strategy=lexical")
    text = page.content.decode()
    assert "Synonyms of “PTO”: annual leave" in text
    assert "<mark>Annual</mark> <mark>leave</mark>" in text
