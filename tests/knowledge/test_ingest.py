"""From bytes to searchable chunks: states, versions, deletion, repeats."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.core.files.storage import default_storage

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.extraction import sandbox
from knowledge.lexical.analyzer import analyze
from knowledge.models import Chunk, Document, KnowledgeBase, LengthStatistic, TermStatistic
from knowledge.services import ingest
from knowledge.services.chunks import edit_chunk
from knowledge.services.documents import (
    Outcome,
    delete_documents,
    move_documents,
    reprocess_documents,
    update_document,
)
from knowledge.services.knowledge_bases import create_knowledge_base, delete_knowledge_base
from knowledge.services.lexical_index import context_of, reweigh_base
from knowledge.services.statistics import (
    corpus_statistics,
    document_frequencies,
    fold_statistics,
)
from search.request import SearchRequest, Strategy
from search.services.search import search
from tests.workers import Workers


def _document(actor: Actor, document_id: Any) -> Document:
    with tenant_scope(actor.tenant_id):
        document: Document = Document.objects.get(id=document_id)
        return document


def _found(actor: Actor, query: str, strategy: Strategy = Strategy.LEXICAL) -> list[str]:
    return [
        hit.chunk.content for hit in search(actor, SearchRequest(query, strategy=strategy)).hits
    ]


def _recomputed(base: KnowledgeBase) -> tuple[Counter[str], int, int]:
    """Term and length statistics counted anew from the searchable chunks."""
    terms: Counter[str] = Counter()
    length = count = 0
    for chunk in Chunk.objects.filter(live=True, enabled=True).select_related("document"):
        context = context_of(chunk.document.title, chunk.heading_path)
        tokens = analyze(f"{context}\n{chunk.content}", chunk.language)
        terms.update({token.term for token in tokens})
        length += len(tokens)
        count += 1
    return terms, count, length


def _assert_statistics_right(actor: Actor, base: KnowledgeBase) -> None:
    with tenant_scope(actor.tenant_id):
        terms, count, length = _recomputed(base)
        statistics = corpus_statistics([base.id])
        assert (statistics.chunks, statistics.length) == (count, length)
        assert document_frequencies([base.id], list(terms)) == dict(terms)
        totals = {row.term for row in TermStatistic.objects.all()}
        assert document_frequencies([base.id], list(totals)).keys() == terms.keys()


def test_a_document_becomes_ready_with_coverage_and_text(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, "First paragraph.\n\nSecond paragraph.")
    document = _document(keeper, added.document.id)
    assert document.status == Document.Status.READY
    assert document.title == "a"
    assert "Second paragraph." in document.extracted_text
    assert document.coverage_found == document.coverage_indexed > 0
    assert document.embedded_count == document.chunk_count == 1


def test_words_are_found_before_the_vectors_are_done(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.add(keeper, base, "The heron stands in the reeds.")
    workers.step()  # reading and cutting; the vectors are still queued
    outcome = search(keeper, SearchRequest("heron"))
    assert [hit.chunk.content for hit in outcome.hits] == ["The heron stands in the reeds."]
    assert outcome.unembedded == 1
    assert _document(keeper, added.document.id).status == Document.Status.PROCESSING
    workers.drain()
    assert search(keeper, SearchRequest("heron")).unembedded == 0


def test_the_same_content_again_does_no_work(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    first = workers.ingest(keeper, base, "Same content.")
    again = workers.add(keeper, base, "Same content.", "other-name.txt")
    assert again.outcome is Outcome.UNCHANGED
    assert again.document.id == first.document.id
    assert len(workers) == 0


def test_a_new_version_is_invisible_until_it_replaces_the_old_one(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    first = workers.ingest(keeper, base, "Lamps are red.", external_id="lamps")
    second = workers.add(keeper, base, "Lamps are green.", external_id="lamps")
    assert second.outcome is Outcome.REPLACING
    workers.step()
    assert _found(keeper, "lamps") == ["Lamps are red."]
    workers.drain()
    assert _found(keeper, "lamps") == ["Lamps are green."]
    assert _found(keeper, "red") == []
    with tenant_scope(keeper.tenant_id):
        assert list(Document.objects.values_list("id", flat=True)) == [first.document.id]
    _assert_statistics_right(keeper, base)


def test_a_broken_new_version_leaves_the_old_one_searchable(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "Lamps are red.", external_id="lamps")
    workers.ingest(keeper, base, b"%PDF-1.7 broken", "lamps.pdf", external_id="lamps")
    assert _found(keeper, "lamps") == ["Lamps are red."]


def test_same_content_with_other_facts_updates_without_indexing(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "Secret plan.", external_id="plan")
    again = workers.add(
        keeper, base, "Secret plan.", external_id="plan", principals=["user:ana@x.org"]
    )
    assert again.outcome is Outcome.UPDATED
    assert len(workers) == 0
    assert _found(keeper, "plan") == []  # the operator searches as public


def test_text_without_letters_is_failed_not_ready(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, " \n\t\n ", "blank.txt")
    document = _document(keeper, added.document.id)
    assert document.status == Document.Status.FAILED
    assert document.error_code == "no_text"
    assert document.error


def test_a_failed_file_is_tried_again_when_uploaded_again(
    keeper: Actor, base: KnowledgeBase, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "extract_file", _raise_missing)
        added = workers.ingest(keeper, base, "Good text.")
    assert _document(keeper, added.document.id).status == Document.Status.FAILED
    again = workers.ingest(keeper, base, "Good text.")
    assert again.outcome is Outcome.RETRIED
    assert _document(keeper, added.document.id).status == Document.Status.READY


def _raise_missing(*_: Any) -> None:
    raise FileNotFoundError


def test_deleting_a_document_leaves_no_trace(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    kept = workers.ingest(keeper, base, "Kept herons.")
    gone = workers.ingest(keeper, base, "Gone herons.")
    name = str(gone.document.original.name)
    assert default_storage.exists(name)
    workers.commit(keeper, lambda: delete_documents(actor=keeper, documents=[gone.document]))
    assert _found(keeper, "herons") == ["Kept herons."]
    assert not default_storage.exists(name)
    assert default_storage.exists(str(kept.document.original.name))
    _assert_statistics_right(keeper, base)


def test_deleting_a_base_while_it_is_filled_leaves_nothing(
    keeper: Actor, base: KnowledgeBase, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = workers.add(keeper, base, "Too late.")
    real = sandbox.extract_file

    def delete_meanwhile(*arguments: Any) -> Any:
        workers.commit(keeper, lambda: delete_knowledge_base(actor=keeper, base=base))
        return real(*arguments)

    monkeypatch.setattr(ingest, "extract_file", delete_meanwhile)
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        for model in (Document, Chunk, TermStatistic, LengthStatistic):
            assert not model.objects.exists()
    assert not default_storage.exists(str(added.document.original.name))


def test_reprocessing_keeps_the_old_chunks_until_the_new_ones_are_done(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, "Herons wade.")
    document = _document(keeper, added.document.id)
    workers.commit(keeper, lambda: reprocess_documents(actor=keeper, documents=[document]))
    workers.step()
    assert _found(keeper, "herons") == ["Herons wade."]
    workers.drain()
    assert _found(keeper, "herons") == ["Herons wade."]
    _assert_statistics_right(keeper, base)


def test_an_edited_chunk_is_found_by_its_new_text_at_once(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "The lamp costs ten euros.")
    with tenant_scope(keeper.tenant_id):
        chunk = Chunk.objects.get()
        edit_chunk(actor=keeper, chunk=chunk, content="The kettle costs nine euros.")
    assert _found(keeper, "kettle") == ["The kettle costs nine euros."]
    assert _found(keeper, "lamp") == []
    assert _found(keeper, "price of the kettle", Strategy.SEMANTIC) == [
        "The kettle costs nine euros."
    ]
    _assert_statistics_right(keeper, base)


def test_a_chunk_switched_off_is_not_found(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "The lamp costs ten euros.")
    with tenant_scope(keeper.tenant_id):
        edit_chunk(actor=keeper, chunk=Chunk.objects.get(), enabled=False)
    for strategy in Strategy:
        assert _found(keeper, "lamp", strategy) == []
    _assert_statistics_right(keeper, base)


def test_moving_a_document_moves_what_is_found(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, "Herons wade.")
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    document = _document(keeper, added.document.id)
    workers.commit(keeper, lambda: move_documents(actor=keeper, documents=[document], base=other))
    workers.drain()
    hits = search(keeper, SearchRequest("herons", knowledge_bases=["other"])).hits
    assert [hit.chunk.content for hit in hits] == ["Herons wade."]
    assert search(keeper, SearchRequest("herons", knowledge_bases=["main"])).hits == []


def test_a_change_of_principals_takes_effect_without_indexing(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, "Herons wade.")
    document = _document(keeper, added.document.id)
    workers.commit(
        keeper, lambda: update_document(actor=keeper, document=document, principals=["group:birds"])
    )
    assert len(workers) == 0
    assert _found(keeper, "herons") == []


def test_work_lost_in_a_crash_can_be_claimed_again(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.add(keeper, base, "Herons wade.")
    with tenant_scope(keeper.tenant_id):  # a worker claimed it and died
        Document.objects.update(status=Document.Status.PROCESSING, stage=Document.Stage.EXTRACTING)
    workers.drain()
    assert _document(keeper, added.document.id).status == Document.Status.PROCESSING
    ingest.release_stalled(keeper.tenant_id, added.document.id)
    ingest.process_document(keeper.tenant_id, added.document.id)
    assert _found(keeper, "herons") == ["Herons wade."]


def test_repeating_a_finished_task_changes_nothing(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    added = workers.ingest(keeper, base, "Herons wade.")
    with tenant_scope(keeper.tenant_id):
        before = list(Chunk.objects.values_list("id", flat=True))
    ingest.process_document(keeper.tenant_id, added.document.id)
    ingest.embed_slice(keeper.tenant_id, added.document.id, 0, ingest.SLICE)
    with tenant_scope(keeper.tenant_id):
        assert list(Chunk.objects.values_list("id", flat=True)) == before


def test_folding_the_ledger_keeps_its_sums(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    for number in range(3):
        workers.ingest(keeper, base, f"Heron number {number} wades in the reeds.")
    with tenant_scope(keeper.tenant_id):
        assert fold_statistics(base.id) > 0
    _assert_statistics_right(keeper, base)


def test_weights_follow_the_true_average_length(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    workers.ingest(keeper, base, "Herons wade.")
    with tenant_scope(keeper.tenant_id):
        base.refresh_from_db()
        assert reweigh_base(base) == 1
        base.refresh_from_db()
        assert base.average_length == corpus_statistics([base.id]).average_length
        assert reweigh_base(base) == 0
