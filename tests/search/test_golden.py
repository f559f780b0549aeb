"""Golden queries: what they find, what turns them red, when they run, who may see them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.access import Action, Actor, operator_actor
from accounts.models import AuditEvent, Tenant
from accounts.tenancy import tenant_scope
from config.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    TransientError,
)
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.chunks import edit_chunk
from knowledge.services.documents import delete_documents, move_documents, reprocess_documents
from knowledge.services.knowledge_bases import create_knowledge_base, update_knowledge_base
from providers.registry import embedder_for
from search import tasks
from search.models import GoldenQuery, GoldenResult, GoldenRun, GoldenStatus
from search.services import golden as service
from search.services import golden_runs
from search.services.golden_passage import Passage
from tests.conftest import ApiFactory
from tests.factories import make_tenant
from tests.workers import Workers

POLICY = """# Travel

Hotels are booked through the travel office at least one week before the journey begins. The office keeps
a list of hotels with agreed prices in every city where we have customers.

Receipts for a journey are handed in within thirty days of the return. After this term nothing is
reimbursed, unless the head of the department has agreed in writing beforehand.

# Cars

Company cars are washed once a month at the expense of the company. The key is kept at the front desk,
where it is fetched and brought back on the same day.
"""
CHINESE = "差旅费报销期限为出差结束后三十天,逾期不予报销。住宿标准为每晚五百元。"
QUESTION = "Until when must receipts be handed in after a journey?"


def chunk_of(document: Document, words: str) -> Chunk:
    """The live chunk that holds the words."""
    found: Chunk = Chunk.objects.select_related("document", "knowledge_base").get(
        document_id=document.id, content__contains=words, live=True
    )
    return found


def cut_small(keeper: Actor, base: KnowledgeBase, workers: Workers) -> Document:
    """The policy in chunks of at most 40 tokens."""
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, chunk_size=64, chunk_overlap=0)
    return workers.ingest(keeper, base, POLICY, "policy.md").document


@pytest.fixture
def policy(keeper: Actor, base: KnowledgeBase, workers: Workers) -> Document:
    """A document of several chunks, beside others."""
    workers.ingest(keeper, base, "The pump P7 needs oil every week.", "pumps.txt")
    workers.ingest(keeper, base, "Employees have thirty days of paid leave.", "leave.txt")
    return cut_small(keeper, base, workers)


@pytest.fixture
def golden(keeper: Actor, policy: Document) -> GoldenQuery:
    """The question about receipts, saved with the chunk that answers it."""
    with tenant_scope(keeper.tenant_id):
        return service.save_golden_query(
            actor=keeper, chunk=chunk_of(policy, "within thirty days"), query=QUESTION
        )


def run(keeper: Actor, base: KnowledgeBase) -> GoldenResult:
    """Run the base's only golden query."""
    done = golden_runs.run_golden_queries(actor=keeper, base=base)
    with tenant_scope(keeper.tenant_id):
        result: GoldenResult = GoldenResult.objects.get(run=done)
    assert (done.green, done.red, done.unknown) == (
        int(result.status == GoldenStatus.GREEN),
        int(result.status == GoldenStatus.RED),
        int(result.status == GoldenStatus.UNKNOWN),
    )
    assert done.finished_at is not None
    return result


def test_a_saved_question_is_kept_with_its_passage(keeper: Actor, golden: GoldenQuery) -> None:
    assert "within thirty days" in golden.quote
    assert (golden.within, golden.strategy, golden.status) == (5, "hybrid", "unknown")
    assert (golden.document_title, golden.heading) == ("Travel", ["Travel"])
    with tenant_scope(keeper.tenant_id):
        assert AuditEvent.objects.filter(action="golden_query.saved", target_id=golden.id).exists()


def test_it_is_green_while_its_passage_is_found(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery
) -> None:
    result = run(keeper, base)
    assert (result.status, result.rank, result.reason) == ("green", 1, "Found at 1.")
    assert result.change == ""
    assert "within thirty days" in result.first_snippet
    with tenant_scope(keeper.tenant_id):
        golden.refresh_from_db()
        assert service.golden_tally(base) == service.Tally(green=1)
    assert (golden.status, golden.rank) == ("green", 1)


def test_an_edited_chunk_turns_it_red_and_is_named(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery
) -> None:
    run(keeper, base)
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
        edit_chunk(actor=keeper, chunk=chunk, content="This part of the rules is being rewritten.")
    result = run(keeper, base)
    assert (result.status, result.rank, result.change) == ("red", None, "turned_red")
    assert f"chunk #{chunk.ordinal + 1} was edited on 20" in result.reason
    assert (result.previous_status, result.previous_rank) == ("green", 1)


def test_a_mended_word_in_the_passage_keeps_it_green(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery
) -> None:
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
        edit_chunk(actor=keeper, chunk=chunk, content=chunk.content.replace("Receipts", "Bills"))
    assert run(keeper, base).status == "green"


def test_a_switched_off_chunk_is_named_and_turns_green_again(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery
) -> None:
    run(keeper, base)
    for enabled, change in ((False, "turned_red"), (True, "turned_green")):
        with tenant_scope(keeper.tenant_id):
            chunk = chunk_of(policy, "within thirty days")
            edit_chunk(actor=keeper, chunk=chunk, enabled=enabled)
        result = run(keeper, base)
        assert result.change == change
        assert ("is switched off" in result.reason) is not enabled


@pytest.mark.parametrize("size", [32, 128, 256])
def test_cutting_anew_keeps_it_green(
    keeper: Actor,
    base: KnowledgeBase,
    policy: Document,
    golden: GoldenQuery,
    workers: Workers,
    size: int,
) -> None:
    with tenant_scope(keeper.tenant_id):
        before = set(Chunk.objects.filter(document_id=policy.id).values_list("id", flat=True))
        update_knowledge_base(actor=keeper, base=base, chunk_size=size, chunk_overlap=8)
    workers.commit(keeper, lambda: reprocess_documents(actor=keeper, documents=[policy]))
    workers.drain()
    with tenant_scope(keeper.tenant_id):
        after = set(Chunk.objects.filter(document_id=policy.id).values_list("id", flat=True))
    assert not before & after
    assert run(keeper, base).status == "green"


def test_a_changed_text_turns_it_red(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    first = workers.ingest(keeper, base, POLICY, "policy.md", external_id="policy").document
    with tenant_scope(keeper.tenant_id):
        quote = "Receipts for a journey are handed in within thirty days of the return."
        service.save_golden_query(
            actor=keeper, chunk=chunk_of(first, quote), query=QUESTION, quote=quote
        )
    assert run(keeper, base).status == "green"
    changed = POLICY.replace(quote, "Bills go to the cashier.")
    workers.ingest(keeper, base, changed, "policy.md", external_id="policy")
    result = run(keeper, base)
    assert (result.status, result.change) == ("red", "turned_red")
    assert result.reason.startswith(
        "The passage is gone from the document: its text was changed; it was indexed on 20"
    )


def test_a_deleted_document_turns_it_red(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery, workers: Workers
) -> None:
    run(keeper, base)
    workers.commit(keeper, lambda: delete_documents(actor=keeper, documents=[policy]))
    result = run(keeper, base)
    assert (result.status, result.change) == ("red", "turned_red")
    assert result.reason == "The document “Travel” was deleted."
    assert result.first_title in {"pumps", "leave"}
    cut_small(keeper, base, workers)
    assert run(keeper, base).reason.endswith("is found at 1 in “Travel”: save it from there.")


def test_a_moved_document_turns_it_red(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery, workers: Workers
) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    workers.commit(keeper, lambda: move_documents(actor=keeper, documents=[policy], base=other))
    workers.drain()
    assert run(keeper, base).reason == "The document was moved to the knowledge base “Other”."


def test_a_rank_beyond_the_wanted_ones_is_red(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    text = "Invoices are kept for ten years in the archive in the cellar of the old house."
    document = workers.ingest(keeper, base, text, "old.txt").document
    with tenant_scope(keeper.tenant_id):
        service.save_golden_query(
            actor=keeper, chunk=chunk_of(document, "ten years"), within=3,
            query="invoices archive", strategy="lexical",
        )  # fmt: skip
    assert run(keeper, base).rank == 1
    for number in range(4):
        workers.ingest(keeper, base, f"invoices archive invoices archive {number}", f"{number}.txt")
    result = run(keeper, base)
    assert (result.status, result.rank, result.change) == ("red", 5, "turned_red")
    assert result.reason == "Found at 5, wanted among the first 3; before at 1."
    assert result.first_snippet.startswith("invoices archive invoices archive")


def test_a_move_of_three_ranks_is_a_change(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery
) -> None:
    run(keeper, base)
    for rank, change in ((3, ""), (4, "moved")):
        with tenant_scope(keeper.tenant_id):
            GoldenQuery.objects.update(rank=rank)
        assert run(keeper, base).change == change


def test_a_chinese_question_finds_its_passage(
    keeper: Actor, base: KnowledgeBase, policy: Document, workers: Workers
) -> None:
    document = workers.ingest(keeper, base, CHINESE, "差旅.txt").document
    with tenant_scope(keeper.tenant_id):
        service.save_golden_query(
            actor=keeper, chunk=chunk_of(document, "三十天"), query="出差回来多久内要报销?",
            quote="差旅费报销期限为\n出差结束后三十天", within=1,
        )  # fmt: skip
    assert run(keeper, base).reason == "Found at 1."


def test_a_restricted_document_is_searched_as_its_readers(
    keeper: Actor, base: KnowledgeBase, policy: Document, workers: Workers
) -> None:
    document = workers.ingest(
        keeper, base, "The bonus of the board is secret.", "board.txt", principals=["group:board"]
    ).document
    with tenant_scope(keeper.tenant_id):
        service.save_golden_query(
            actor=keeper, chunk=chunk_of(document, "bonus"), query="bonus of the board"
        )
    assert run(keeper, base).status == "green"


def test_a_filter_that_leaves_the_passage_out(
    keeper: Actor, base: KnowledgeBase, policy: Document
) -> None:
    wanted = {"field": "title", "op": "eq", "value": "pumps"}
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
        service.save_golden_query(actor=keeper, chunk=chunk, query=QUESTION, filter=wanted)
    result = run(keeper, base)
    assert (result.status, result.first_title) == ("red", "pumps")
    assert result.reason == 'Filtered out. Not true of it: title eq "pumps".'


def test_a_search_that_was_not_whole_judges_nothing(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery, monkeypatch: Any
) -> None:
    run(keeper, base)

    def down(self: Any, texts: Any) -> Any:
        raise TransientError("The provider is down.")

    monkeypatch.setattr(type(embedder_for(base.embedding_model)), "embed_queries", down)
    result = run(keeper, base)
    assert result.status == "unknown"
    assert "The provider is down." in result.reason
    with tenant_scope(keeper.tenant_id):
        golden.refresh_from_db()
    assert (golden.status, golden.rank) == ("green", 1)


def test_the_first_check_belongs_to_the_saving(keeper: Actor, golden: GoldenQuery) -> None:
    assert service.refresh_golden_query(golden).status == "green"
    with tenant_scope(keeper.tenant_id):
        assert GoldenQuery.objects.get().status == "green"
        assert not GoldenRun.objects.exists()


@pytest.mark.parametrize(
    ("facts", "field"),
    [
        ({"query": " "}, "query"),
        ({"within": 0}, "within"),
        ({"within": 101}, "within"),
        ({"strategy": "magic"}, "strategy"),
        ({"quote": " \n"}, "quote"),
        ({"quote": "This stands nowhere."}, "quote"),
        ({"filter": {"field": "nope", "op": "eq", "value": 1}}, "filter.field"),
    ],
)
def test_faults_name_their_field(
    keeper: Actor, policy: Document, facts: dict[str, Any], field: str
) -> None:
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
    with tenant_scope(keeper.tenant_id), pytest.raises(InvalidInputError) as caught:
        service.save_golden_query(actor=keeper, chunk=chunk, **{"query": QUESTION, **facts})
    assert [fault.field for fault in caught.value.errors] == [field]


def test_one_question_is_saved_once_for_a_passage(
    keeper: Actor, policy: Document, golden: GoldenQuery
) -> None:
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
        with pytest.raises(ConflictError):
            service.save_golden_query(actor=keeper, chunk=chunk, query=QUESTION)
        service.save_golden_query(actor=keeper, chunk=chunk, query=QUESTION, strategy="lexical")


def test_changing_the_quote_looks_for_it_in_the_document(
    keeper: Actor, golden: GoldenQuery
) -> None:
    with tenant_scope(keeper.tenant_id):
        changed = service.change_golden_query(
            actor=keeper, golden=golden, quote="The key is kept at the front desk"
        )
        assert changed.heading == ["Cars"]
        with pytest.raises(InvalidInputError):
            service.change_golden_query(actor=keeper, golden=golden, quote="Nothing like this.")


def test_half_of_a_cut_passage_counts_and_a_similar_one_does_not() -> None:
    one, two = "The pump P7 needs oil every week. ", "The pump P8 needs oil every week. "
    passage = Passage(one.strip(), one + two)
    assert passage.is_in(Chunk(content=one[:20], start=0, end=20))
    assert passage.is_in(Chunk(content=one[15:] + two[:10], start=15, end=len(one) + 10))
    assert not passage.is_in(Chunk(content=two, start=len(one), end=len(one + two)))
    assert not passage.is_in(Chunk(content=one[:4], start=0, end=4))
    assert passage.is_in(
        Chunk(content="Once more: Ｔhe pump  P7 needs oil\nevery week.", start=90, end=140)
    )


# --- runs ----------------------------------------------------------------------------------------


def test_the_last_runs_are_kept(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery, monkeypatch: Any
) -> None:
    monkeypatch.setattr(golden_runs, "KEPT_RUNS", 2)
    made = [golden_runs.run_golden_queries(actor=keeper, base=base).id for _ in range(3)]
    with tenant_scope(keeper.tenant_id):
        assert set(GoldenRun.objects.values_list("id", flat=True)) == set(made[1:])
        assert GoldenResult.objects.count() == 2


def test_there_must_be_something_to_run(keeper: Actor, base: KnowledgeBase) -> None:
    with pytest.raises(ConflictError):
        golden_runs.run_golden_queries(actor=keeper, base=base)
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, status="archived")
    with pytest.raises(InvalidInputError, match="archived"):
        golden_runs.run_golden_queries(actor=keeper, base=base)
    reader = Actor(keeper.tenant_id, "reader", frozenset({Action.READ, Action.SEARCH}))
    with pytest.raises(ForbiddenError):
        golden_runs.run_golden_queries(actor=reader, base=base)


def due(keeper: Actor, base: KnowledgeBase) -> str | None:
    with tenant_scope(keeper.tenant_id):
        return golden_runs.due_trigger(KnowledgeBase.objects.get(id=base.id))


def test_a_run_is_due_when_the_base_has_changed(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery, workers: Workers
) -> None:
    assert due(keeper, base) == "schedule"  # the first run, to have something to compare with
    golden_runs.run_golden_queries(actor=keeper, base=base)
    assert due(keeper, base) is None

    added = workers.add(keeper, base, "Another text about ships.", "ships.txt")
    assert due(keeper, base) is None, "while a document is unfinished"
    workers.drain()
    assert due(keeper, base) == "re_index"
    golden_runs.run_golden_queries(actor=keeper, base=base)
    assert due(keeper, base) is None

    workers.commit(keeper, lambda: delete_documents(actor=keeper, documents=[added.document]))
    assert due(keeper, base) == "re_index"
    golden_runs.run_golden_queries(actor=keeper, base=base)

    with tenant_scope(keeper.tenant_id):
        edit_chunk(actor=keeper, chunk=chunk_of(policy, "front desk"), content="Keys are lost.")
    assert due(keeper, base) == "re_index"
    golden_runs.run_golden_queries(actor=keeper, base=base)

    with tenant_scope(keeper.tenant_id):
        KnowledgeBase.objects.filter(id=base.id).update(embedding_field="embedding_alternate")
    assert due(keeper, base) == "model_change"


def test_a_run_under_way_is_not_started_twice_unless_it_was_cut_off(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery
) -> None:
    made = golden_runs.run_golden_queries(actor=keeper, base=base)
    with tenant_scope(keeper.tenant_id):
        GoldenRun.objects.filter(id=made.id).update(finished_at=None, document_count=99)
    assert due(keeper, base) is None
    with tenant_scope(keeper.tenant_id):
        GoldenRun.objects.update(started_at=timezone.now() - timedelta(hours=1))
    assert due(keeper, base) == "re_index"


@pytest.fixture
def queued(monkeypatch: Any) -> list[tuple[str, ...]]:
    """What the periodic tasks queue."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(tasks.run_golden_queries_task, "delay", lambda *call: calls.append(call))
    return calls


def test_tasks_run_each_change_once(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery, queued: list[tuple[str, ...]]
) -> None:
    golden_runs.run_golden_queries(actor=keeper, base=base)
    tasks.check_golden_queries()
    assert queued == []
    with tenant_scope(keeper.tenant_id):
        GoldenRun.objects.update(embedding_model="another")
    tasks.check_golden_queries()
    tasks.check_golden_queries()
    assert queued == [(str(keeper.tenant_id), str(base.id), "model_change")] * 2
    for call in queued:
        tasks.run_golden_queries_task(*call)
    with tenant_scope(keeper.tenant_id):
        assert GoldenRun.objects.filter(trigger="model_change").count() == 1


def test_every_night_all_run(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery, queued: list[tuple[str, ...]]
) -> None:
    golden_runs.run_golden_queries(actor=keeper, base=base)
    tasks.run_all_golden_queries()
    (call,) = queued
    tasks.run_golden_queries_task(*call)
    with tenant_scope(keeper.tenant_id):
        assert GoldenRun.objects.filter(trigger="schedule", green=1).exists()
        update_knowledge_base(actor=keeper, base=base, status="archived")
    tasks.run_golden_queries_task(*call)  # archived meanwhile: nothing happens
    with tenant_scope(keeper.tenant_id):
        assert GoldenRun.objects.count() == 2


def test_tenants_see_their_own(keeper: Actor, base: KnowledgeBase, golden: GoldenQuery) -> None:
    golden_runs.run_golden_queries(actor=keeper, base=base)
    stranger = operator_actor(make_tenant().id)
    with tenant_scope(stranger.tenant_id):
        assert not service.visible_golden_queries(stranger).exists()
        assert not service.visible_golden_runs(stranger).exists()
        assert service.golden_tallies() == {}


# --- command line --------------------------------------------------------------------------------


def test_the_command_fails_while_something_is_red(
    keeper: Actor, base: KnowledgeBase, policy: Document, golden: GoldenQuery
) -> None:
    out = StringIO()
    call_command("groundwork", "golden", knowledge_base=base.slug, stdout=out)
    assert "green" in out.getvalue()
    assert QUESTION in out.getvalue()
    assert "1 of 1 golden queries green" in out.getvalue()
    with tenant_scope(keeper.tenant_id):
        edit_chunk(actor=keeper, chunk=chunk_of(policy, "within thirty days"), enabled=False)
    out = StringIO()
    with pytest.raises(CommandError, match="0 of 1 golden queries green") as caught:
        call_command("groundwork", "golden", knowledge_base=base.slug, stdout=out)
    assert caught.value.returncode == 1
    assert "Turned red. Chunk" in out.getvalue()
    assert "is switched off" in out.getvalue()


# --- REST ----------------------------------------------------------------------------------------


def test_the_api_saves_checks_changes_runs_and_deletes(
    keeper: Actor, base: KnowledgeBase, policy: Document, api: ApiFactory
) -> None:
    client = api("write", tenant=Tenant.objects.get(id=keeper.tenant_id))
    with tenant_scope(keeper.tenant_id):
        chunk = chunk_of(policy, "within thirty days")
    made = client.post(
        "/api/v1/golden-queries/", {"query": QUESTION, "chunk_id": str(chunk.id)}, format="json"
    )
    assert made.status_code == 201
    assert (made.data["status"], made.data["rank"]) == ("green", 1)
    assert made.data["knowledge_base"] == base.slug
    where = f"/api/v1/golden-queries/{made.data['id']}/"

    quoted = {"query": "Where is the key?", "document_id": str(policy.id)}
    answer = client.post("/api/v1/golden-queries/", quoted, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "chunk_id"
    quoted["quote"] = "kept at the front desk"
    assert client.post("/api/v1/golden-queries/", quoted, format="json").data["status"] == "green"

    wrong = {"filter": {"field": "title", "op": "eq", "value": "pumps"}, "note": "why"}
    changed = client.patch(where, wrong, format="json").data
    assert (changed["status"], changed["note"], changed["previous_rank"]) == ("red", "why", 1)
    listed = client.get("/api/v1/golden-queries/", {"knowledge_base": base.slug, "status": "red"})
    assert [row["query"] for row in listed.data["results"]] == [QUESTION]

    runs = f"/api/v1/knowledge-bases/{base.slug}/golden-runs/"
    run_made = client.post(runs)
    assert run_made.status_code == 201
    assert (run_made.data["green"], run_made.data["red"], run_made.data["total"]) == (1, 1, 2)
    assert run_made.data["results"][0]["status"] == "red"
    assert [row["id"] for row in client.get(runs).data["results"]] == [run_made.data["id"]]
    one = client.get(f"/api/v1/golden-runs/{run_made.data['id']}/").data
    assert one["results"] == run_made.data["results"]

    assert client.delete(where).status_code == 204
    assert client.get(where).status_code == 404


def test_a_key_bound_to_another_base_sees_none(
    keeper: Actor, base: KnowledgeBase, golden: GoldenQuery
) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
        bound = replace(keeper, knowledge_base_ids=frozenset({other.id}))
        assert not service.visible_golden_queries(bound).exists()
        with pytest.raises(NotFoundError):
            service.access_golden_query(bound, golden.id)
