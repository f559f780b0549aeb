"""Changing the embedding model of a base, between the local model and a loopback endpoint."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.access import Actor
from accounts.models import AuditEvent
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, CredentialsError, InvalidInputError
from knowledge.models import Chunk, Document, KnowledgeBase, ReEmbedding
from knowledge.services import base_indexes, ingest, reembedding_work
from knowledge.services.chunks import edit_chunk
from knowledge.services.documents import delete_documents
from knowledge.services.knowledge_bases import create_knowledge_base, update_knowledge_base
from knowledge.services.lexical_index import text_in_context
from knowledge.services.reembedding import (
    cancel_reembedding,
    discard_spare_vectors,
    find_reembedding,
    model_before,
    roll_back,
    start_reembedding,
)
from knowledge.services.reembedding_switch import switch
from knowledge.tasks import (
    discard_old_vectors,
    resume_stalled_reembeddings,
    resume_unfinished_reembeddings,
)
from providers.registry import embedder_for
from search.request import SearchRequest, Strategy
from search.services.search import search
from tests.knowledge.embedding_server import DIMENSIONS, EmbeddingServer
from tests.workers import Workers

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

LOCAL = "multilingual-e5-small"
REMOTE = "openai/loopback"
LOCAL_DIMENSIONS = 384
TEXTS = [
    "Herons wade in shallow water and hunt fish.",
    "The printer reports error E42 when the tray is empty.",
    "Invoices are kept for ten years in the archive.",
    "员工每年有二十五天带薪年假。",
    "发票必须在三十天内报销。",
]
Status = ReEmbedding.Status


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of two chunks, and no pauses."""
    monkeypatch.setattr(reembedding_work, "SLICE", 2)
    monkeypatch.setattr("time.sleep", lambda _: None)


@pytest.fixture
def filled(
    keeper: Actor, base: KnowledgeBase, workers: Workers, server: EmbeddingServer
) -> KnowledgeBase:
    """A base of five documents of one chunk each, with vectors of the local model."""
    with tenant_scope(keeper.tenant_id):
        KnowledgeBase.objects.filter(id=base.id).update(embedding_model=LOCAL)
    for number, text in enumerate(TEXTS):
        workers.ingest(keeper, base, text, f"{number}.txt")
    server.texts.clear()
    return _base(keeper)


@pytest.fixture
def start(keeper: Actor, workers: Workers, server: EmbeddingServer) -> Callable[..., ReEmbedding]:
    """Starts a change and lets workers begin it; the probe is not counted."""

    def run(base: KnowledgeBase, model: str = REMOTE) -> ReEmbedding:
        job: ReEmbedding = workers.commit(
            keeper, lambda: start_reembedding(actor=keeper, base=base, model=model)
        )
        server.texts.clear()
        return job

    return run


def _base(actor: Actor) -> KnowledgeBase:
    with tenant_scope(actor.tenant_id):
        base: KnowledgeBase = KnowledgeBase.objects.get(slug="main")
        return base


def _job(actor: Actor) -> ReEmbedding:
    with tenant_scope(actor.tenant_id):
        job = find_reembedding(KnowledgeBase.objects.get(slug="main"))
    assert job is not None
    return job


def _dimensions(actor: Actor, field: str) -> list[int | None]:
    """The length of each chunk's vector in a field, in the order of the chunks."""
    with tenant_scope(actor.tenant_id):
        vectors = Chunk.objects.order_by("id").values_list(field, flat=True)
        return [None if vector is None else len(vector) for vector in vectors]


def _best(actor: Actor, query: str) -> str:
    outcome = search(actor, SearchRequest(query, strategy=Strategy.SEMANTIC))
    assert outcome.degraded == []
    return outcome.hits[0].chunk.content


def _edit(actor: Actor, beginning: str, content: str) -> None:
    with tenant_scope(actor.tenant_id):
        chunk = Chunk.objects.get(content__startswith=beginning)
        edit_chunk(actor=actor, chunk=chunk, content=content)


def _assert_sound(actor: Actor, model: str) -> None:
    """The base uses the model, and every vector that search reads is the one this model gives."""
    base = _base(actor)
    assert base.embedding_model == model
    with tenant_scope(actor.tenant_id):
        for chunk in Chunk.objects.select_related("document"):
            text = text_in_context(chunk.document.title, chunk.heading_path, chunk.content)
            stored = getattr(chunk, base.embedding_field)
            expected = embedder_for(model).embed_passages([text])[0].tolist()
            assert stored == pytest.approx(expected, abs=2e-3), chunk.content


def test_old_vectors_are_searched_until_the_switch_and_new_ones_after(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    seen = []
    while _job(keeper).is_unfinished:
        base = _base(keeper)
        seen.append((base.embedding_model, base.embedding_field))
        assert _best(keeper, "annual leave 年假有几天") == TEXTS[3]
        workers.step()
    assert len(seen) > 4
    assert set(seen) == {(LOCAL, "embedding")}
    workers.drain()
    base = _base(keeper)
    assert (base.embedding_model, base.embedding_field) == (REMOTE, "embedding_alternate")
    assert (base.spare_model, base.spare_field) == (LOCAL, "embedding")
    assert _best(keeper, "带薪年假") == TEXTS[3]
    assert _best(keeper, "printer reports error") == TEXTS[1]
    assert _dimensions(keeper, "embedding") == [LOCAL_DIMENSIONS] * 5
    assert _dimensions(keeper, "embedding_alternate") == [DIMENSIONS] * 5
    job = _job(keeper)
    assert (job.status, job.total, job.done, job.reused) == (Status.SWITCHED, 5, 5, 0)
    _assert_sound(keeper, REMOTE)
    with tenant_scope(keeper.tenant_id):
        event = AuditEvent.objects.get(action="knowledge_base.model_changed")
    assert event.detail == {"from": LOCAL, "to": REMOTE}


def test_an_interrupted_change_computes_only_the_rest(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start(filled)
    workers.step()  # begin
    workers.step()  # two chunks
    with monkeypatch.context() as patch:
        patch.setattr(reembedding_work, "write_vectors", _killed)
        with pytest.raises(KeyboardInterrupt):
            workers.step()  # computed, not stored
    workers.clear()
    assert sorted(map(str, _dimensions(keeper, "embedding_alternate"))) == ["64"] * 2 + ["None"] * 3
    server.texts.clear()
    with workers.commits():
        resume_unfinished_reembeddings()
    workers.drain()
    assert len(server.texts) == 3
    _assert_sound(keeper, REMOTE)


def _killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_change_without_a_sign_of_life_is_taken_up_again(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    workers.step()
    workers.clear()
    with workers.commits():
        resume_stalled_reembeddings()
    assert len(workers) == 0  # it may well be alive
    with tenant_scope(keeper.tenant_id):
        ReEmbedding.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))
    with workers.commits():
        resume_stalled_reembeddings()
    workers.drain()
    assert _job(keeper).status == Status.SWITCHED


def test_a_task_that_was_queued_twice_does_nothing(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    workers.step()
    before = len(workers)
    with workers.commits():
        resume_unfinished_reembeddings()
    for _ in range(before):
        workers.step()  # the lanes before
    assert len(workers) == before
    assert _dimensions(keeper, "embedding_alternate") == [None] * 5
    workers.drain()
    _assert_sound(keeper, REMOTE)


def test_two_workers_share_the_chunks(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one worker computes a piece, the other one computes another."""
    job = start(filled)
    workers.step()
    first, second = _job(keeper).lanes[:2]
    store = reembedding_work._store

    def interleave(*arguments: Any) -> bool:
        monkeypatch.setattr(reembedding_work, "_store", store)
        assert reembedding_work.advance(keeper.tenant_id, job.id, second) == 0
        return store(*arguments)

    monkeypatch.setattr(reembedding_work, "_store", interleave)
    assert reembedding_work.advance(keeper.tenant_id, job.id, first) == 0
    assert len(server.texts) == len(set(server.texts)) == 4
    assert _job(keeper).done == 4
    workers.drain()
    assert len(server.texts) == 5
    _assert_sound(keeper, REMOTE)


def test_documents_that_come_and_go_meanwhile(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.step()
    workers.step()
    added = workers.add(keeper, filled, "仓库在周日关闭。", "late.txt")
    with tenant_scope(keeper.tenant_id):
        gone = Document.objects.get(filename="4.txt")
        delete_documents(actor=keeper, documents=[gone])
    workers.drain()
    assert _job(keeper).status == Status.SWITCHED
    with tenant_scope(keeper.tenant_id):
        document = Document.objects.get(id=added.document.id)
    assert document.status == Document.Status.READY
    assert document.embedded_count == document.chunk_count == 1
    assert _best(keeper, "仓库周日关闭") == "仓库在周日关闭。"
    _assert_sound(keeper, REMOTE)


def test_a_document_half_embedded_at_the_switch_goes_on_with_the_new_model(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The vectors being computed for the old model at the moment of the switch are not stored."""
    start(filled)
    embed = embedder_for(LOCAL).embed_passages
    monkeypatch.setattr(ingest, "SLICE", 1)
    added = workers.add(keeper, filled, "Owls hunt at night.", "owls.txt")
    late: list[int] = []

    class Slow:
        """The switch happens while this embedder is at work."""

        def embed_passages(self, texts: list[str]) -> Any:
            monkeypatch.setattr(ingest, "embedder_for", embedder_for)
            vectors = embed(texts)
            workers.drain()
            late.append(len(texts))
            return vectors

    while not _is_waiting_for_vectors(keeper, added.document.id):
        workers.step_last()
    monkeypatch.setattr(ingest, "embedder_for", lambda model: Slow())
    workers.step_last()
    workers.drain()
    assert late == [1]
    assert _job(keeper).status == Status.SWITCHED
    assert _dimensions(keeper, "embedding")[-1] is None
    with tenant_scope(keeper.tenant_id):
        document = Document.objects.get(id=added.document.id)
    assert document.status == Document.Status.READY
    assert document.embedded_count == document.chunk_count == 1
    _assert_sound(keeper, REMOTE)


def _is_waiting_for_vectors(actor: Actor, document_id: Any) -> bool:
    with tenant_scope(actor.tenant_id):
        stage: str = Document.objects.get(id=document_id).stage
    return stage == Document.Stage.EMBEDDING


def test_a_chunk_edited_after_its_turn_is_computed_again(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    workers.step()
    for _ in range(3):
        workers.step()
    assert None not in _dimensions(keeper, "embedding_alternate")
    _edit(keeper, "Herons", "Storks nest on chimneys.")
    assert _best(keeper, "storks on chimneys") == "Storks nest on chimneys."
    workers.drain()
    assert _best(keeper, "storks nest on chimneys") == "Storks nest on chimneys."
    _assert_sound(keeper, REMOTE)


def test_a_chunk_edited_while_its_old_text_is_computed_gets_the_new_texts_vector(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start(filled)
    workers.step()
    store = reembedding_work._store

    def edit_first(*arguments: Any) -> bool:
        monkeypatch.setattr(reembedding_work, "_store", store)
        _edit(keeper, "Herons", "Storks nest on chimneys.")
        return store(*arguments)

    monkeypatch.setattr(reembedding_work, "_store", edit_first)
    workers.drain()
    _assert_sound(keeper, REMOTE)


def test_what_changes_while_the_index_is_built_is_computed_before_the_switch(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []

    def build(*_: Any) -> bool:
        built.append(_job(keeper).status)
        if len(built) == 1:
            return False  # another process is at it
        if len(built) == 2:
            _edit(keeper, "Herons", "Storks nest on chimneys.")
        return True

    monkeypatch.setattr(reembedding_work, "prepare_spare_index", build)
    start(filled)
    workers.drain()
    assert built == [Status.READY] * 3
    assert _job(keeper).status == Status.SWITCHED
    _assert_sound(keeper, REMOTE)


def test_wrong_credentials_are_told_at_once(
    keeper: Actor, filled: KnowledgeBase, server: EmbeddingServer, settings: Any
) -> None:
    settings.GROUNDWORK_EMBED_API_KEY = "wrong"
    with tenant_scope(keeper.tenant_id):
        with pytest.raises(CredentialsError, match=f"{REMOTE} cannot be used: .*key"):
            start_reembedding(actor=keeper, base=filled, model=REMOTE)
        assert not ReEmbedding.objects.exists()
        for model in ("openai/unknown", LOCAL):
            with pytest.raises(InvalidInputError) as caught:
                start_reembedding(actor=keeper, base=filled, model=model)
            assert [fault.field for fault in caught.value.errors] == ["embedding_model"]


def test_after_a_failure_the_same_change_goes_on_where_it_stopped(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.step()
    workers.step()
    server.failures = [(401, {})]
    workers.drain()
    job = _job(keeper)
    assert (job.status, job.error_code) == (Status.FAILED, "remote_credentials")
    assert job.error == f"{REMOTE}: The embedding service refuses the API key."
    assert _base(keeper).embedding_model == LOCAL
    assert _best(keeper, "带薪年假有几天") == TEXTS[3]
    start(_base(keeper))
    workers.drain()
    job = _job(keeper)
    assert (job.status, job.reused, job.done) == (Status.SWITCHED, 2, 5)
    assert len(server.texts) == 3
    _assert_sound(keeper, REMOTE)


def test_a_busy_endpoint_is_asked_again_when_it_wishes(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.step()
    server.failures = [(429, {"Retry-After": "77"})] * 4 + [(503, {})] * 4
    workers.drain()
    assert workers.waits_s == [77.0, 4.0]
    assert _job(keeper).status == Status.SWITCHED
    _assert_sound(keeper, REMOTE)


def test_an_endpoint_that_stays_away_fails_the_change(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reembedding_work, "_MAX_ATTEMPTS", 3)
    start(filled)
    server.failures = [(500, {})] * 12
    workers.drain()
    job = _job(keeper)
    assert (job.status, job.error_code) == (Status.FAILED, "remote_transient")
    assert _base(keeper).embedding_model == LOCAL


def test_cancelling_keeps_search_and_what_was_computed(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start(filled)
    workers.step()
    workers.step()
    store = reembedding_work._store

    def cancel_first(*arguments: Any) -> bool:
        with tenant_scope(keeper.tenant_id):
            cancel_reembedding(actor=keeper, base=_base(keeper))
        return store(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(reembedding_work, "_store", cancel_first)
        workers.step()
    workers.drain()
    assert _job(keeper).status == Status.CANCELLED
    assert [d for d in _dimensions(keeper, "embedding_alternate") if d] == [DIMENSIONS] * 2
    assert _best(keeper, "带薪年假有几天") == TEXTS[3]
    with tenant_scope(keeper.tenant_id), pytest.raises(ConflictError):
        cancel_reembedding(actor=keeper, base=_base(keeper))
    start(_base(keeper))
    workers.drain()
    assert len(server.texts) == 3
    _assert_sound(keeper, REMOTE)


def test_only_one_change_runs_at_a_time(
    keeper: Actor, filled: KnowledgeBase, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    with tenant_scope(keeper.tenant_id), pytest.raises(ConflictError, match="already"):
        start_reembedding(actor=keeper, base=filled, model=REMOTE)


def test_vectors_of_a_third_model_are_removed_first(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reembedding_work, "_EMPTIED_AT_ONCE", 2)
    start(filled)
    workers.step()
    workers.step()
    with tenant_scope(keeper.tenant_id):
        cancel_reembedding(actor=keeper, base=_base(keeper))
    workers.drain()
    settings.GROUNDWORK_EMBED_MODEL = "other"
    start(_base(keeper), "openai/other")
    assert _base(keeper).spare_model == ""
    workers.drain()
    assert len(server.texts) == 5
    _assert_sound(keeper, "openai/other")


def test_rolling_back_is_done_at_once(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.drain()
    first = _job(keeper)
    with tenant_scope(keeper.tenant_id):
        base = KnowledgeBase.objects.get(slug="main")
        assert model_before(base) == LOCAL
        job = roll_back(actor=keeper, base=base)
        assert (job.status, job.reused) == (Status.SWITCHED, 5)
        first.refresh_from_db()
        assert first.status == Status.ROLLED_BACK
        assert (base.embedding_model, base.embedding_field) == (LOCAL, "embedding")
    assert _best(keeper, "annual leave 年假有几天") == TEXTS[3]
    _assert_sound(keeper, LOCAL)


def test_rolling_back_computes_what_has_come_since(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.drain()
    workers.ingest(keeper, filled, "仓库在周日关闭。", "late.txt")
    _edit(keeper, "Herons", "Storks nest on chimneys.")
    job = workers.commit(keeper, lambda: roll_back(actor=keeper, base=_base(keeper)))
    assert job.status == Status.QUEUED
    assert _base(keeper).embedding_model == REMOTE
    workers.drain()
    job = _job(keeper)
    assert (job.status, job.reused, job.done) == (Status.SWITCHED, 4, 6)
    _assert_sound(keeper, LOCAL)


def test_without_old_vectors_there_is_no_way_back(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
) -> None:
    with tenant_scope(keeper.tenant_id), pytest.raises(ConflictError, match="nothing to roll"):
        roll_back(actor=keeper, base=filled)
    start(filled)
    workers.drain()
    workers.commit(keeper, lambda: discard_spare_vectors(actor=keeper, base=_base(keeper)))
    workers.drain()
    assert _dimensions(keeper, "embedding") == [None] * 5
    base = _base(keeper)
    assert (base.spare_model, base.spare_since) == ("", None)
    with tenant_scope(keeper.tenant_id), pytest.raises(ConflictError, match="nothing to roll"):
        roll_back(actor=keeper, base=base)


def test_old_vectors_go_after_a_week_and_not_before(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
) -> None:
    start(filled)
    workers.drain()
    discard_old_vectors()
    assert _dimensions(keeper, "embedding") == [LOCAL_DIMENSIONS] * 5
    with tenant_scope(keeper.tenant_id):
        KnowledgeBase.objects.update(spare_since=timezone.now() - timedelta(days=7, minutes=1))
    discard_old_vectors()
    assert _dimensions(keeper, "embedding") == [None] * 5
    _assert_sound(keeper, REMOTE)


def test_old_vectors_stay_while_a_change_is_using_their_field(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    workers.step()
    workers.step()
    with tenant_scope(keeper.tenant_id):
        KnowledgeBase.objects.update(spare_since=timezone.now() - timedelta(days=30))
    discard_old_vectors()
    workers.drain()
    _assert_sound(keeper, REMOTE)


def test_passages_too_long_for_the_model_are_counted(
    keeper: Actor,
    base: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    start: Callable[..., ReEmbedding],
    settings: Any,
) -> None:
    with tenant_scope(keeper.tenant_id):
        KnowledgeBase.objects.filter(id=base.id).update(embedding_model=LOCAL)
    workers.ingest(keeper, base, "每位员工都必须遵守公司的信息安全规定。" * 12, "long.txt")
    workers.ingest(keeper, base, "Short.", "short.txt")
    settings.GROUNDWORK_EMBED_MAX_TOKENS = 64
    start(_base(keeper))
    workers.drain()
    job = _job(keeper)
    assert (job.status, job.shortened) == (Status.SWITCHED, 1)
    assert 20 < max(map(len, server.texts)) < 80


def test_saving_the_settings_of_a_base_read_before_leaves_the_model_alone(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    start(filled)
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=filled, name="Renamed")
    base = _base(keeper)
    assert (base.name, base.embedding_model) == ("Renamed", REMOTE)


def test_the_command_waits_for_the_end_and_says_how_it_was(
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: workers.drain())
    out = io.StringIO()
    command = ("groundwork", "re-embed", "--knowledge-base", "main", "--model", REMOTE)
    job = workers.commit(keeper, lambda: start_reembedding(actor=keeper, base=filled, model=REMOTE))
    call_command(*command, stdout=out)  # joins the one that is running
    assert out.getvalue() == f"main uses {REMOTE}: 5 vectors.\n"
    assert _job(keeper).id == job.id
    with pytest.raises(CommandError, match="uses openai/loopback already"):
        call_command(*command)


def test_another_base_is_left_alone(
    keeper: Actor, filled: KnowledgeBase, workers: Workers, start: Callable[..., ReEmbedding]
) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
        KnowledgeBase.objects.filter(id=other.id).update(embedding_model=LOCAL)
    workers.ingest(keeper, other, TEXTS[0], "0.txt")
    start(filled)
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        other.refresh_from_db()
        chunk = Chunk.objects.get(knowledge_base=other)
    assert (other.embedding_model, other.embedding_field) == (LOCAL, "embedding")
    assert len(chunk.embedding) == LOCAL_DIMENSIONS
    assert chunk.embedding_alternate is None


@pytest.mark.django_db(transaction=True)
def test_a_large_base_gets_its_index_before_the_switch_and_loses_it_with_the_vectors(
    transactional_db: None,
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base_indexes, "LARGE", 5)
    name = base_indexes.index_name(filled.id, "embedding_alternate")
    before: list[bool] = []

    def look_first(*arguments: Any) -> None:
        before.append(_is_index(name))
        switch(*arguments)

    monkeypatch.setattr(reembedding_work, "switch", look_first)
    start(filled)
    workers.drain()
    assert before == [True]
    base = _base(keeper)
    assert base.own_indexes == ["embedding_alternate"]
    assert base.embedding_field == "embedding_alternate"
    workers.commit(keeper, lambda: roll_back(actor=keeper, base=base))
    workers.commit(keeper, lambda: discard_spare_vectors(actor=keeper, base=_base(keeper)))
    workers.drain()
    assert not _is_index(name)
    assert _base(keeper).own_indexes == []
    start(_base(keeper))  # with vectors of another length this would fail at the old index
    workers.drain()
    _assert_sound(keeper, REMOTE)
    base_indexes.drop_index(keeper.tenant_id, filled.id, "embedding_alternate")


def _is_index(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [name])
        found: bool = cursor.fetchone()[0]
    return found


@pytest.mark.django_db(transaction=True)
def test_workers_editors_and_the_switch_at_the_same_time(
    transactional_db: None,
    keeper: Actor,
    filled: KnowledgeBase,
    workers: Workers,
    start: Callable[..., ReEmbedding],
    server: EmbeddingServer,
) -> None:
    """Real transactions: three workers beside one who edits; then every vector is right."""
    job = start(filled)
    assert reembedding_work.advance(keeper.tenant_id, job.id, job.lanes[0]) is None
    failures: list[BaseException] = []

    def work(lane: str) -> None:
        try:
            while _job(keeper).is_unfinished:
                if reembedding_work.advance(keeper.tenant_id, job.id, lane) is None:
                    lane = (_job(keeper).lanes or [lane])[0]
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(lane,)) for lane in [*job.lanes, "x", "y"]]
    for thread in threads:
        thread.start()
    for number in range(6):
        with tenant_scope(keeper.tenant_id):
            chunk = Chunk.objects.order_by("id")[number % 5]
            edit_chunk(actor=keeper, chunk=chunk, content=f"第{number}次修改 revision {number}")
    for thread in threads:
        thread.join()
    assert failures == []
    assert _job(keeper).status == Status.SWITCHED
    _assert_sound(keeper, REMOTE)
