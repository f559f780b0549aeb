"""Why a passage was not returned: each obstacle on its way, and who may ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from accounts.access import Action, Actor, actor_for_member
from accounts.models import Membership, Tenant
from accounts.tenancy import tenant_scope
from config.errors import InvalidInputError, NotFoundError, TransientError
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.chunks import edit_chunk
from knowledge.services.documents import reprocess_documents
from knowledge.services.knowledge_bases import create_knowledge_base, update_knowledge_base
from providers.registry import embedder_for
from search.access import AccessScope
from search.outcome import SearchOutcome
from search.request import Mode, SearchRequest, Strategy
from search.retrieval.filters import compile_filter
from search.retrieval.ranks import Standing
from search.services import why_not
from search.services.search import search
from search.services.why_not import WhyNot, explain_missing
from search.services.why_not_verdicts import Findings, decide
from tests.conftest import ApiFactory, BrowserFactory
from tests.factories import make_tenant
from tests.workers import Workers

LEXICAL = Strategy.LEXICAL


@pytest.fixture
def pumps(keeper: Actor, base: KnowledgeBase, workers: Workers) -> Document:
    """One passage about pumps, beside others."""
    workers.ingest(keeper, base, "Employees have thirty days of paid leave.", "leave.txt")
    workers.ingest(keeper, base, "差旅费报销期限为出差结束后三十天。", "travel.txt")
    return workers.ingest(keeper, base, "The pump P7 needs oil every week.", "pumps.txt").document


def chunk_of(keeper: Actor, document: Document) -> Chunk:
    with tenant_scope(keeper.tenant_id):
        found: Chunk = Chunk.objects.select_related("document", "knowledge_base").get(
            document_id=document.id, live=True
        )
    return found


def why(actor: Actor, document: Document, query: str, tree: Any = None, **options: Any) -> WhyNot:
    request = SearchRequest(query, condition=compile_filter(tree), **options)
    return explain_missing(actor, request, tree, document_id=document.id)


def failed(answer: WhyNot) -> list[str]:
    return [check.check for check in answer.checks if not check.passed]


def detail(answer: WhyNot, name: str) -> str:
    return next(check.detail for check in answer.checks if check.check == name)


def test_a_returned_passage_is_said_to_be(keeper: Actor, pumps: Document) -> None:
    answer = why(keeper, pumps, "pump oil")
    assert (answer.returned, answer.rank, answer.verdict.code) == (True, 1, "returned")
    assert answer.verdict.explanation == "It is result 1."
    assert (answer.legs["lexical"].rank, answer.legs["vector"].rank) == (1, 1)
    assert failed(answer) == []


def test_the_scores_are_those_of_the_search(keeper: Actor, pumps: Document) -> None:
    answer = why(keeper, pumps, "days of oil", limit=1)
    hits = search(keeper, SearchRequest("days of oil")).hits
    (hit,) = [hit for hit in hits if hit.chunk.document_id == pumps.id]
    for name, (rank, score) in hit.fused.legs.items():
        assert answer.legs[name].rank == rank
        assert answer.legs[name].score == pytest.approx(score, abs=1e-5)


def test_a_document_that_waits(
    keeper: Actor, base: KnowledgeBase, pumps: Document, workers: Workers
) -> None:
    waiting = workers.add(keeper, base, "Later.", "later.txt").document
    answer = why(keeper, waiting, "later")
    assert (answer.verdict.code, answer.chunk) == ("not_indexed", None)
    assert "waiting" in answer.verdict.explanation


def test_a_document_that_failed_says_why(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    broken = workers.ingest(keeper, base, b"%PDF-1.7 and nothing more", "broken.pdf").document
    with tenant_scope(keeper.tenant_id):
        error = Document.objects.get(id=broken.id).error
    answer = why(keeper, broken, "anything")
    assert answer.verdict.code == "not_indexed"
    assert error
    assert error in answer.verdict.explanation


def test_a_passage_of_an_unpublished_version(
    keeper: Actor, pumps: Document, workers: Workers
) -> None:
    workers.commit(keeper, lambda: reprocess_documents(actor=keeper, documents=[pumps]))
    workers.step()
    with tenant_scope(keeper.tenant_id):
        hidden = Chunk.objects.get(document_id=pumps.id, live=False)
    answer = explain_missing(keeper, SearchRequest("pump"), None, chunk_id=hidden.id)
    assert answer.verdict.code == "not_live"


def test_a_switched_off_passage(keeper: Actor, pumps: Document) -> None:
    with tenant_scope(keeper.tenant_id):
        edit_chunk(actor=keeper, chunk=chunk_of(keeper, pumps), enabled=False)
    answer = why(keeper, pumps, "pump oil")
    assert answer.verdict.code == "disabled"
    assert answer.verdict.explanation == "Chunk #1 is switched off by an editor."
    assert answer.legs == {}


def test_a_base_that_is_not_searched_or_archived(
    keeper: Actor, base: KnowledgeBase, pumps: Document
) -> None:
    with tenant_scope(keeper.tenant_id):
        create_knowledge_base(actor=keeper, name="Other")
    answer = why(keeper, pumps, "pump", knowledge_bases=["other"])
    assert answer.verdict.code == "base_not_searched"
    assert answer.verdict.explanation.endswith("searched were: other.")
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, status="archived")
    for names in (None, [base.slug]):
        assert why(keeper, pumps, "pump", knowledge_bases=names).verdict.code == "base_archived"


def test_the_conditions_that_do_not_hold_are_named(keeper: Actor, pumps: Document) -> None:
    holds = {"field": "title", "op": "contains", "value": "pump"}
    fails = {"field": "source", "op": "in", "value": ["notion"]}
    either = {"or": [{"field": "author", "op": "eq", "value": "Ana"}, {"not": holds}]}
    answer = why(keeper, pumps, "pump", {"and": [holds, {"and": [fails, either]}]})
    assert answer.verdict.code == "filtered"
    assert answer.verdict.explanation == (
        'Not true of it: source in ["notion"]; (author eq "Ana" or not title contains "pump").'
    )


def test_principals_that_do_not_suffice(
    keeper: Actor, base: KnowledgeBase, pumps: Document, workers: Workers
) -> None:
    text = "The bonus of the board is secret."
    board = workers.ingest(keeper, base, text, "board.txt", principals=["group:board"]).document
    answer = why(keeper, board, "bonus", as_principals=["user:ana@x.org"])
    assert answer.verdict.code == "not_permitted"
    assert answer.verdict.explanation == (
        "Open to group:board; the search was made as public, user:ana@x.org."
    )
    assert why(keeper, board, "bonus", as_principals=["group:board"]).returned


def test_readers_learn_nothing_of_what_they_may_not_read(
    keeper: Actor, base: KnowledgeBase, workers: Workers
) -> None:
    text = "The bonus of the board is secret."
    board = workers.ingest(keeper, base, text, "board.txt", principals=["group:board"]).document
    reader = replace(keeper, actions=frozenset({Action.SEARCH}), may_assert_principals=False)
    asserting = replace(reader, may_assert_principals=True)
    for actor, principals in (
        (reader, None),
        (reader, ["group:board"]),
        (asserting, None),
        (asserting, ["group:sales"]),
    ):
        with pytest.raises(NotFoundError):
            why(actor, board, "bonus", as_principals=principals)
    assert why(asserting, board, "bonus", as_principals=["group:board"]).returned


def test_unknown_and_foreign_passages_read_the_same(keeper: Actor, pumps: Document) -> None:
    stranger = replace(keeper, tenant_id=make_tenant().id)
    chunk_id = chunk_of(keeper, pumps).id
    request = SearchRequest("pump")
    for actor, ids in (
        (keeper, {"chunk_id": uuid4()}),
        (keeper, {"document_id": uuid4()}),
        (stranger, {"chunk_id": chunk_id}),
        (stranger, {"document_id": pumps.id}),
        (replace(keeper, knowledge_base_ids=frozenset()), {"chunk_id": chunk_id}),
    ):
        with pytest.raises(NotFoundError):
            explain_missing(actor, request, None, **ids)


@pytest.mark.parametrize(
    ("query", "there", "missing"),
    [("pump wine", "pump", "wine"), ("每周给泵 oil 加油", "oil", "每周")],
)
def test_words_that_stand_there_and_words_that_do_not(
    keeper: Actor, pumps: Document, query: str, there: str, missing: str
) -> None:
    told = detail(why(keeper, pumps, query), "words")
    present, absent = told.split(" Not in the passage: ")
    assert present == f"In the passage: {there}."
    assert missing in absent


def test_nothing_matches(keeper: Actor, pumps: Document) -> None:
    answer = why(keeper, pumps, "wine and leave", strategy=LEXICAL)
    assert answer.verdict.code == "not_matched"
    assert answer.verdict.explanation == ("Nothing in it matches. Not in the passage: wine, leave.")
    assert answer.legs == {}


def test_the_limit_cuts_it(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    texts = [
        "oil pump oil pump",
        "oil pump and a little more",
        "oil, said someone of the staff here",
    ]
    last = [workers.ingest(keeper, base, text, f"{text}.txt").document for text in texts][-1]
    answer = why(keeper, last, "oil pump", strategy=LEXICAL, limit=2)
    assert (answer.verdict.code, answer.returned, answer.rank) == ("cut_by_limit", False, None)
    assert answer.verdict.explanation == "It ranks 3. The results 1 to 2 were asked for."
    assert answer.legs["lexical"].rank == 3
    assert why(keeper, last, "oil pump", strategy=LEXICAL, limit=3).rank == 3
    assert why(keeper, last, "oil pump", strategy=LEXICAL, limit=1, offset=2).rank == 3


def test_the_offset_skips_it(keeper: Actor, pumps: Document) -> None:
    answer = why(keeper, pumps, "pump oil", offset=1)
    assert answer.verdict.code == "before_offset"


@pytest.mark.parametrize(
    ("options", "facts", "code", "explanation"),
    [
        (
            {"limit": 1},
            {"fused_rank": 2},
            "lost_in_fusion",
            (
                "It ranks 1 in the leg lexical, but 2 when the legs are put together. "
                "The results 1 to 1 were asked for."
            ),
        ),
        (
            {"limit": 3, "recency": 0.5},
            {"fused_rank": 2, "final_rank": 9},
            "recency",
            (
                "It ranked 2 by its words and meaning; recency moved it to 9. "
                "The results 1 to 3 were asked for."
            ),
        ),
        (
            {"limit": 3},
            {"fused_rank": None},
            "passed_over",
            "It ranks 1 in the leg lexical, but the index of this large base passed it over.",
        ),
    ],
)
def test_lost_between_the_legs_and_the_answer(
    keeper: Actor, options: dict[str, Any], facts: dict[str, Any], code: str, explanation: str
) -> None:
    request = SearchRequest("pump", **options)
    nowhere = AccessScope(keeper.tenant_id, (), ())
    legs = {"lexical": Standing(1, 9.5, None), "vector": Standing(40, 0.8, None)}
    known = {"rank": None, "final_rank": None, "legs": legs, "words": "", **facts}
    outcome = SearchOutcome(request, nowhere)
    verdict, _ = decide(
        Findings(request=request, asked=outcome, hits=[], chunk=Chunk(document=Document()), **known)
    )
    assert (verdict.code, verdict.explanation) == (code, explanation)


def test_ranked_beyond_what_a_leg_takes(
    keeper: Actor, base: KnowledgeBase, workers: Workers, monkeypatch: Any
) -> None:
    """102 passages that are better by words leave no place among the hundred candidates."""
    lines = [{"text": f"oil pump number{number}"} for number in range(102)]
    many = "\n\n".join(f"# Pump {row['text']}\n\noil pump {row['text']}" for row in lines)
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, chunk_size=32, chunk_overlap=0)
    workers.ingest(keeper, base, many, "many.md")
    last = workers.ingest(
        keeper, base, "A pump, they say, is an old thing of iron.", "old.txt"
    ).document
    answer = why(keeper, last, "oil pump", strategy=LEXICAL)
    with tenant_scope(keeper.tenant_id):
        better = Chunk.objects.exclude(document_id=last.id).count()
    assert better >= 101
    assert answer.legs["lexical"].rank == better + 1
    assert answer.legs["lexical"].needed is not None
    assert answer.legs["lexical"].score < answer.legs["lexical"].needed
    assert answer.verdict.code == "cut_by_limit"
    assert answer.verdict.explanation.startswith(f"It ranks {better + 1}.")
    monkeypatch.setattr(why_not, "MAX_WINDOW", 100)  # as if nothing could be paged to beyond that
    answer = why(keeper, last, "oil pump", strategy=LEXICAL)
    assert answer.verdict.code == "ranked_too_low"
    assert answer.verdict.explanation.startswith(
        f"Its best rank is {better + 1} in the leg lexical"
    )
    assert answer.verdict.explanation.endswith("In the passage: pump. Not in the passage: oil.")


def test_near_duplicates_and_grouping(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    text = "Every pump in the hall is filled with fresh oil on the first Monday of a month by the guard"
    documents = [
        workers.ingest(keeper, base, f"{text}{end}", f"{n}.txt", title="Rules").document
        for n, end in enumerate((".", " . "))
    ]
    answers = [why(keeper, found, "pump oil", collapse_duplicates=True) for found in documents]
    (lost,) = [answer for answer in answers if not answer.returned]
    assert lost.verdict.code == "duplicate"
    assert lost.verdict.explanation == "It says the same as result 1 and was collapsed into it."
    options: dict[str, Any] = {"collapse_duplicates": True, "offset": 1}
    later = why(keeper, lost.document, "pump oil", **options)
    assert later.verdict == lost.verdict, "the result before the offset stands for it"

    two = "# One\n\nThe pump needs oil and the pump gets oil.\n\n# Two\n\nA pump is made of iron.\n"
    document = workers.ingest(keeper, base, two, "two.md").document
    with tenant_scope(keeper.tenant_id):
        second = Chunk.objects.get(document_id=document.id, content__contains="iron")
    request = SearchRequest("pump oil", group_by_document=True)
    grouped = explain_missing(keeper, request, None, chunk_id=second.id)
    assert grouped.verdict.code == "grouped"
    assert "stands for its document" in grouped.verdict.explanation
    assert explain_missing(keeper, request, None, document_id=document.id).returned


def test_a_search_that_was_not_whole_is_said_to_be_so(
    keeper: Actor, base: KnowledgeBase, pumps: Document, monkeypatch: Any
) -> None:
    def down(self: Any, texts: Any) -> Any:
        raise TransientError("The provider is down.")

    monkeypatch.setattr(type(embedder_for(base.embedding_model)), "embed_queries", down)
    answer = why(keeper, pumps, "grease", strategy=Strategy.SEMANTIC)
    assert answer.verdict.code == "incomplete"
    assert "The provider is down." in answer.verdict.explanation


def test_file_names(keeper: Actor, pumps: Document) -> None:
    assert why(keeper, pumps, "pumps", mode=Mode.FILENAME).returned
    assert why(keeper, pumps, "xylophone", mode=Mode.FILENAME).verdict.code == "not_matched"


def test_the_box_of_the_search_test(
    browser: BrowserFactory, owner: Membership, viewer: Membership, workers: Workers, settings: Any
) -> None:
    actor = actor_for_member(owner)
    with tenant_scope(owner.tenant_id):
        base = create_knowledge_base(actor=actor, name="Machines")
    facts = {"principals": ["group:board"]}
    secret = workers.ingest(actor, base, "The <b>bonus</b> pump.", "bonus.txt", **facts).document
    workers.ingest(actor, base, "The bonus is paid in May.", "May bonuses.txt")

    def ask(member: Membership, missed: str) -> Any:
        asked = {"query": "pump", "missed": missed}
        return browser(member).get(reverse("admin:search_test"), asked)

    page = f"http://testserver/admin/knowledge/document/{secret.id}/change/?chunk="
    with tenant_scope(owner.tenant_id):
        chunk = Chunk.objects.get(document_id=secret.id)
    for named in (
        "bonus.txt",
        "BONUS.TXT",
        str(secret.id),
        str(chunk.id),
        f"{page}{chunk.id}#reading",
    ):
        answer = ask(owner, named).context["missed"].answer
        assert (answer.verdict.code, answer.document.id) == ("not_permitted", secret.id)
        assert "Open to group:board" in ask(owner, named).content.decode()
        hidden = ask(viewer, named).context["missed"]
        assert hidden.answer is None
        assert "not visible to you" in hidden.error or "No document is named so" in hidden.error
    assert "May bonuses" in ask(owner, "onus").context["missed"].error
    assert ask(owner, "").context["missed"] is None


def test_an_unknown_base_is_the_same_error_as_in_a_search(keeper: Actor, pumps: Document) -> None:
    with pytest.raises(InvalidInputError) as caught:
        why(keeper, pumps, "pump", knowledge_bases=["nowhere"])
    assert [fault.field for fault in caught.value.errors] == ["knowledge_bases"]


def test_the_api(keeper: Actor, pumps: Document, api: ApiFactory) -> None:
    tenant = Tenant.objects.get(id=keeper.tenant_id)
    where = "/api/v1/search/why-not/"
    chunk = chunk_of(keeper, pumps)
    body = {"query": "wine", "strategy": "lexical", "chunk_id": str(chunk.id)}
    answer = api("search", tenant=tenant).post(where, body, format="json")
    assert answer.status_code == 200
    assert answer.data["verdict"] == "not_matched"
    assert (answer.data["returned"], answer.data["rank"]) == (False, None)
    assert answer.data["chunk_id"] == str(chunk.id)
    words = {"check": "words", "passed": False, "detail": "Not in the passage: wine."}
    assert words in answer.data["checks"]
    found = api("search", tenant=tenant).post(where, {**body, "query": "oil"}, format="json").data
    assert (found["rank"], found["legs"]["lexical"]["rank"]) == (1, 1)
    for wrong in ({"query": "wine"}, {**body, "document_id": str(pumps.id)}):
        refused = api("search", tenant=tenant).post(where, wrong, format="json")
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == "chunk_id"
    assert api("search").post(where, body, format="json").status_code == 404
    assert api("read", tenant=tenant).post(where, body, format="json").status_code == 403
