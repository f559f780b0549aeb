"""Bases of judged sets: filled whole, and used again only when nothing that decides their content changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from accounts.access import Actor, operator_actor
from accounts.models import Tenant
from accounts.tenancy import tenant_scope
from benchmarks.evaluation import bases, run
from benchmarks.evaluation.report import Results
from benchmarks.evaluation.sets import JudgedDocument, JudgedSet
from config.celery import app
from knowledge.models import Document
from providers.registry import embedder_for

pytestmark = pytest.mark.django_db(transaction=True)

JUDGED = JudgedSet(
    "tiny",
    "en",
    (
        JudgedDocument("d1", "Archive", "We keep invoices for ten years.", "d1.txt"),
        JudgedDocument("d2", "Only a title about printers", "", "d2.txt"),
    ),
    {"q1": "How long are invoices kept?", "q2": "printers"},
    {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}},
    2,
)


@pytest.fixture
def actor(tenant: Tenant) -> Iterator[Actor]:
    """Whose tasks run at once, in this process."""
    before = app.conf.get("task_always_eager")
    app.conf.task_always_eager = True
    yield operator_actor(tenant.id)
    app.conf.task_always_eager = before


def test_the_same_set_is_ingested_once(actor: Actor) -> None:
    first = bases.base_of(actor, JUDGED, fresh=False)
    assert bases.base_of(actor, JUDGED, fresh=False).id == first.id
    assert bases.base_of(actor, JUDGED, fresh=True).id != first.id


def test_other_documents_or_other_code_are_ingested_anew(
    actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bases.base_of(actor, JUDGED, fresh=False)
    changed = replace(JUDGED.documents[0], title="Attic")
    other = bases.base_of(actor, replace(JUDGED, documents=(changed, *JUDGED.documents[1:])), fresh=False)  # fmt: skip
    assert other.id != first.id
    monkeypatch.setattr(bases, "_pipeline_digest", lambda: b"another analyser")
    assert bases.base_of(actor, JUDGED, fresh=False).id != other.id


def test_a_base_that_lost_a_document_is_not_used_again(actor: Actor) -> None:
    first = bases.base_of(actor, JUDGED, fresh=False)
    with tenant_scope(actor.tenant_id):
        Document.objects.get(external_id="d2").delete()
    assert bases.base_of(actor, JUDGED, fresh=False).id != first.id


def test_every_system_ranks_the_right_document_first(actor: Actor) -> None:
    options = run.Options(("tiny",), ("bm25s", "cosine", "lexical", "semantic", "hybrid"), 10, 10, 10, fresh=False)  # fmt: skip
    embedder = embedder_for("multilingual-e5-small")
    results = Results()
    run.Run(options, actor, embedder, results).measure(JUDGED)
    assert {system: results.get("tiny", system) for system in options.systems} == dict.fromkeys(options.systems, 1.0)  # fmt: skip


def test_a_fresh_run_fills_a_base_once(actor: Actor) -> None:
    options = run.Options(("tiny",), ("lexical",), 10, 10, 10, fresh=True)
    measured = run.Run(options, actor, embedder_for("multilingual-e5-small"), Results())
    measured.measure(JUDGED)
    base = measured.searchers["tiny"].base
    measured.measure(JUDGED)
    assert measured.searchers["tiny"].base.id == base.id
