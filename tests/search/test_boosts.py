"""Boosts of documents and sources: what they do to the order, who gives them, what outlives what."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from accounts.access import Actor, operator_actor
from accounts.models import AuditEvent, Membership
from accounts.tenancy import tenant_scope
from config.errors import InvalidInputError
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import update_document
from knowledge.services.knowledge_bases import create_knowledge_base, update_knowledge_base
from search.api.serializers import explain_hit
from search.request import Strategy
from tests.conftest import ApiFactory, BrowserFactory
from tests.search.conftest import Ask
from tests.workers import Workers

# Of three like passages the one that names herons most often is first.
TEXTS = {
    "first.txt": "Herons and herons, and again herons wade in water.",
    "second.txt": "Herons and herons, and again storks wade in water.",
    "third.txt": "Herons and cranes, and again storks wade in water.",
}
ORDER = list(TEXTS)


@pytest.fixture
def birds(keeper: Actor, base: KnowledgeBase, workers: Workers) -> dict[str, Document]:
    """Three documents, the third one out of a wiki."""
    return {
        name: workers.ingest(
            keeper, base, text, name, source="wiki" if name == "third.txt" else "upload"
        ).document
        for name, text in TEXTS.items()
    }


def boost(keeper: Actor, document: Document, factor: float) -> None:
    with tenant_scope(keeper.tenant_id):
        update_document(actor=keeper, document=document, boost=factor)


def boost_sources(keeper: Actor, base: KnowledgeBase, boosts: Any) -> None:
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, source_boosts=boosts)


def order(ask: Ask) -> list[str]:
    outcome = ask("herons", strategy=Strategy.LEXICAL)
    return [hit.chunk.document.filename for hit in outcome.hits]


def test_a_boosted_document_overtakes(keeper: Actor, birds: dict[str, Document], ask: Ask) -> None:
    assert order(ask) == ORDER
    boost(keeper, birds["third.txt"], 3.0)
    assert order(ask) == ["third.txt", "first.txt", "second.txt"]


def test_a_small_factor_sinks(keeper: Actor, birds: dict[str, Document], ask: Ask) -> None:
    boost(keeper, birds["first.txt"], 0.1)
    assert order(ask) == ["second.txt", "third.txt", "first.txt"]


def test_a_source_is_boosted_in_its_base(
    keeper: Actor, base: KnowledgeBase, birds: dict[str, Document], ask: Ask
) -> None:
    boost_sources(keeper, base, {"wiki": 3.0})
    assert order(ask) == ["third.txt", "first.txt", "second.txt"]
    boost_sources(keeper, base, {})
    assert order(ask) == ORDER


def test_both_multiply_and_are_explained(
    keeper: Actor, base: KnowledgeBase, birds: dict[str, Document], ask: Ask
) -> None:
    plain = {hit.chunk.document.filename: hit.fused.score for hit in ask("herons").hits}
    boost_sources(keeper, base, {"wiki": 4.0})
    boost(keeper, birds["third.txt"], 0.5)
    hits = {hit.chunk.document.filename: hit for hit in ask("herons").hits}
    assert hits["third.txt"].boost == 2.0
    assert hits["third.txt"].fused.score == pytest.approx(2 * plain["third.txt"])
    assert explain_hit(hits["third.txt"])["boost"] == {"factor": 2.0}
    assert hits["first.txt"].boost == 1.0
    assert hits["first.txt"].fused.score == pytest.approx(plain["first.txt"])
    assert "boost" not in explain_hit(hits["first.txt"])


def test_a_boost_outlives_a_new_version(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    document = workers.ingest(keeper, base, "Herons wade.", external_id="birds").document
    boost(keeper, document, 2.5)
    for text in ("Herons wade.", "Herons and storks wade."):
        workers.ingest(keeper, base, text, external_id="birds", title="Birds")
        with tenant_scope(keeper.tenant_id):
            found = Document.objects.get(external_id="birds")
        assert (found.id, found.boost, found.title) == (document.id, 2.5, "Birds")
    assert "storks" in found.extracted_text


def test_a_boost_given_while_a_new_version_waits_is_kept(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    document = workers.ingest(keeper, base, "Herons wade.", external_id="birds").document
    workers.add(keeper, base, "Storks wade.", external_id="birds")
    boost(keeper, document, 2.5)
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        found = Document.objects.get(external_id="birds")
    assert (found.boost, found.extracted_text) == (2.5, "Storks wade.")


@pytest.mark.parametrize(
    "factor", [0, 0.09, 10.01, -1, float("nan"), float("inf"), True, "2", None]
)
def test_factors_out_of_range_are_refused(
    keeper: Actor, base: KnowledgeBase, birds: dict[str, Document], factor: Any
) -> None:
    with pytest.raises(InvalidInputError) as error:
        boost(keeper, birds["first.txt"], factor)
    assert [fault.field for fault in error.value.errors] == ["boost"]
    with pytest.raises(InvalidInputError) as error:
        boost_sources(keeper, base, {"upload": 1.0, "wiki": factor})
    assert [fault.field for fault in error.value.errors] == ["settings.source_boosts.wiki"]


@pytest.mark.parametrize(
    "boosts", [None, [1.5], {"": 2.0}, {"x" * 51: 2.0}, {f"s{n}": 2.0 for n in range(101)}]
)
def test_what_is_no_factor_by_source_is_refused(
    keeper: Actor, base: KnowledgeBase, boosts: Any
) -> None:
    with pytest.raises(InvalidInputError) as error:
        boost_sources(keeper, base, boosts)
    assert error.value.errors[0].field == "settings.source_boosts"


def test_over_http(owner: Membership, api: ApiFactory) -> None:
    actor = operator_actor(owner.tenant_id)
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name="Main")
        document = Document(knowledge_base=base, title="Birds")
        document.save()
    client = api("read", "write")
    url = f"/api/v1/documents/{document.id}/"
    assert client.get(url).json()["boost"] == 1.0
    assert client.patch(url, {"boost": 2}, format="json").json()["boost"] == 2.0
    for wrong in (11, 0, "nan", "high", None):
        refused = client.patch(url, {"boost": wrong}, format="json")
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "boost")
    url = f"/api/v1/knowledge-bases/{base.slug}/"
    changed = client.patch(url, {"settings": {"source_boosts": {"wiki": 1.5}}}, format="json")
    assert changed.json()["settings"]["source_boosts"] == {"wiki": 1.5}
    kept = client.patch(url, {"settings": {"chunk_size": 300}}, format="json").json()["settings"]
    assert (kept["source_boosts"], kept["chunk_size"]) == ({"wiki": 1.5}, 300)
    for boosts, field in (
        ({"wiki": 11}, "settings.source_boosts.wiki"),
        ({"wiki": "1.5"}, "settings.source_boosts.wiki"),
        ([1], "settings.source_boosts"),
    ):
        refused = client.patch(url, {"settings": {"source_boosts": boosts}}, format="json")
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field)
    with tenant_scope(actor.tenant_id):
        fields = list(AuditEvent.objects.order_by("id").values_list("action", "detail"))
    assert ("document.changed", {"fields": ["boost"]}) in fields
    assert ("knowledge_base.changed", {"fields": ["source_boosts"]}) in fields


def test_in_the_admin(browser: BrowserFactory, editor: Membership) -> None:
    actor = operator_actor(editor.tenant_id)
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name="Main")
        document = Document(knowledge_base=base, title="Birds")
        document.save()
    client = browser(editor)
    url = reverse("admin:knowledge_document_change", args=[document.id])
    facts = {"title": "Birds", "principals": "public", "metadata": "{}"}
    assert client.post(url, {**facts, "boost": "2.5"}).status_code == 302
    assert 'value="2.5"' in client.get(url).content.decode()
    refused = client.post(url, {**facts, "boost": "0.05"})
    assert "boost" in refused.context["adminform"].form.errors
    url = reverse("admin:knowledge_knowledgebase_change", args=[base.id])
    fields = {
        "name": "Main", "slug": "main", "status": "active", "language": "auto", "chunk_size": "256",
        "chunk_overlap": "32",
    }  # fmt: skip
    assert client.post(url, {**fields, "source_boosts": "wiki：1.5\nmail: 0.5"}).status_code == 302
    with tenant_scope(actor.tenant_id):
        assert KnowledgeBase.objects.get().source_boosts == {"wiki": 1.5, "mail": 0.5}
    assert "mail: 0.5\nwiki: 1.5" in client.get(url).content.decode()
    for wrong in ("wiki", "wiki: much", "wiki: 100", ": 2"):
        refused = client.post(url, {**fields, "source_boosts": wrong})
        assert "source_boosts" in refused.context["adminform"].form.errors, wrong
