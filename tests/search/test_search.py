"""Searching real chunks with the real embedder, in English and in Chinese."""

from __future__ import annotations

import time
from dataclasses import replace
from uuid import uuid4

import pytest

from accounts.access import Action, Actor
from accounts.tenancy import tenant_scope
from config.errors import InvalidInputError, TransientError
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from providers.registry import embedder_for
from search.api.serializers import render_outcome
from search.request import Mode, SearchRequest, Strategy
from search.services import search as service
from tests.search.conftest import Ask
from tests.workers import Workers

TEXTS = {
    "invoices.txt": "We keep invoices for ten years in the archive.",
    "printer.txt": "Error PPR-9087 means that paper is stuck in tray two.",
    "driver.txt": "The driver stops with ERR_0x80 when the cable is loose.",
    "travel.txt": "差旅费报销期限为出差结束后三十天,逾期不予报销。",
    "badge.txt": "门禁卡丢失后应立即到行政部挂失。",
    "holiday.txt": "Employees have thirty days of paid leave each year.",
}


@pytest.fixture
def library(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """Six short documents in two languages."""
    for filename, text in TEXTS.items():
        workers.ingest(keeper, base, text, filename)


def _first(outcome: service.SearchOutcome) -> str:
    return outcome.hits[0].chunk.document.filename if outcome.hits else ""


@pytest.mark.parametrize(
    ("query", "strategy", "filename"),
    [
        ("PPR-9087", Strategy.LEXICAL, "printer.txt"),
        ("ppr-9087", Strategy.HYBRID, "printer.txt"),
        ("ERR_0x80", Strategy.LEXICAL, "driver.txt"),
        ("报销", Strategy.LEXICAL, "travel.txt"),
        ("報銷期限", Strategy.LEXICAL, "travel.txt"),
        ("门禁卡", Strategy.LEXICAL, "badge.txt"),
        ("how long do we keep invoices?", Strategy.HYBRID, "invoices.txt"),
        ("出差回来多久内要报销?", Strategy.HYBRID, "travel.txt"),
        ("vacation entitlement", Strategy.SEMANTIC, "holiday.txt"),
        ("员工每年有多少天带薪休假?", Strategy.SEMANTIC, "holiday.txt"),
        ("deadline for travel expenses", Strategy.SEMANTIC, "travel.txt"),
    ],
)
@pytest.mark.usefixtures("library")
def test_the_right_passage_comes_first(
    ask: Ask, query: str, strategy: Strategy, filename: str
) -> None:
    assert _first(ask(query, strategy=strategy)) == filename


@pytest.mark.parametrize(
    "query",
    [
        "'",
        "\\",
        "& | ! ( ) :*",
        "<->",
        '"invoices" OR 1=1 --',
        "%_",
        "?!",
        "🙂",
        "a" * 8000,
        "。,;",
    ],
)
@pytest.mark.usefixtures("library")
def test_any_punctuation_is_harmless(ask: Ask, query: str) -> None:
    for strategy in Strategy:
        assert ask(query, strategy=strategy).degraded == []
    assert ask(query, mode=Mode.FILENAME).degraded == []


@pytest.mark.usefixtures("library")
def test_a_larger_limit_never_reorders_the_head(ask: Ask) -> None:
    full = [hit.chunk.id for hit in ask("days of leave and 报销", limit=6).hits]
    assert len(full) == 6
    for limit in range(1, 6):
        assert [hit.chunk.id for hit in ask("days of leave and 报销", limit=limit).hits] == full[
            :limit
        ]
    assert [hit.chunk.id for hit in ask("days of leave and 报销", limit=2, offset=3).hits] == full[
        3:5
    ]


@pytest.mark.parametrize("query", ["invoices", "发票保存多久", "invoices.txt"])
def test_permissions_hold_in_every_leg(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask, query: str
) -> None:
    text = "发票保存多久: we keep invoices for ten years."
    workers.ingest(keeper, base, text, "invoices.txt", principals=["group:finance"])
    asserting = replace(keeper, actions=frozenset({Action.SEARCH}))
    reader = replace(asserting, may_assert_principals=False)
    ways = [{"strategy": strategy} for strategy in Strategy] + [{"mode": Mode.FILENAME}]
    for way in ways:
        assert ask(query, asserting, **way).hits == []
        assert ask(query, asserting, as_principals=["user:ana@x.org"], **way).hits == []
        denied = ask(query, reader, as_principals=["group:finance"], **way)
        assert denied.hits == []
        assert denied.degraded[0][0] == "principals"
    seen = ask("invoices", asserting, as_principals=["group:finance"])
    assert [hit.chunk.content for hit in seen.hits] == [text]


def test_a_key_bound_to_a_base_sees_no_other(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    workers.ingest(keeper, base, "Herons wade.")
    bound = replace(keeper, knowledge_base_ids=frozenset({other.id}))
    assert ask("herons", bound).hits == []
    with pytest.raises(InvalidInputError, match="main"):
        ask("herons", bound, knowledge_bases=["main"])


def test_a_passage_with_the_very_code_beats_its_likes(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    rows = "\n".join(f"SB-{1000 + n},Compound {n},{n % 40}" for n in range(300))
    workers.ingest(keeper, base, f"Code,Substance,Max. temperature\n{rows}\n", "substances.csv")
    for number in (1003, 1101, 1299):
        best = ask(f"At what maximum temperature may SB-{number} be stored?").hits[0]
        assert f"SB-{number}" in best.chunk.content
        assert best.fused.legs["lexical"][0] == 1


def test_empty_bases_give_no_results_and_no_error(
    keeper: Actor, base: KnowledgeBase, ask: Ask
) -> None:
    outcome = ask("opening hours")
    assert outcome.hits == []
    assert outcome.degraded == []
    assert outcome.sources[0]["state"] == "empty"


@pytest.mark.usefixtures("library")
def test_a_failing_embedder_degrades_to_words_and_says_so(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def embed_queries(self, _texts: list[str]) -> None:
            raise TransientError("The embedding service does not answer.")

    monkeypatch.setattr(service, "embedder_for", lambda _model: Broken())
    outcome = ask("invoices")
    assert _first(outcome) == "invoices.txt"
    assert outcome.degraded == [("embed_query", "The embedding service does not answer.")]
    assert render_outcome(outcome, uuid4())["complete"] is False


@pytest.mark.usefixtures("library")
def test_a_deadline_spent_on_the_embedding_degrades_and_does_not_fail(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = embedder_for

    def slow(model: str) -> object:
        time.sleep(0.15)
        return real(model)

    monkeypatch.setattr(service, "embedder_for", slow)
    outcome = ask("invoices", deadline_ms=100)
    assert outcome.hits == []
    assert [name for name, _ in outcome.degraded] == ["retrieve"]
    assert outcome.total is not None
    assert (outcome.total.value, outcome.total.exact) == (0, False), "nobody has looked"
    monkeypatch.undo()
    assert _first(ask("invoices", deadline_ms=10_000)) == "invoices.txt"


@pytest.mark.usefixtures("library")
def test_file_names_are_found_without_content(ask: Ask) -> None:
    assert _first(ask("badge", mode=Mode.FILENAME)) == "badge.txt"
    assert ask("行政部", mode=Mode.FILENAME).hits == []


def test_one_result_per_document_when_grouped(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    long = "\n\n".join(f"# Part {n}\n\n" + "The heron wades in the reeds. " * 60 for n in range(4))
    workers.ingest(keeper, base, long, "long.md")
    workers.ingest(keeper, base, "Another heron.", "short.txt")
    assert len(ask("heron").hits) > 2
    grouped = ask("heron", group_by_document=True)
    assert len({hit.chunk.document_id for hit in grouped.hits}) == len(grouped.hits) == 2


def test_content_is_escaped_in_snippets(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    workers.ingest(keeper, base, "Beware of <script>alert(1)</script> & herons.")
    result = render_outcome(ask("herons", explain=True), uuid4())["results"][0]
    assert "<script>" not in result["snippet"]
    assert "&lt;script&gt;" in result["snippet"]
    assert "<mark>herons</mark>" in result["snippet"]
    assert result["content"] == "Beware of <script>alert(1)</script> & herons."
    assert result["explain"]["lexical"]["rank"] == 1
    assert result["explain"]["rerank"] is None


@pytest.mark.usefixtures("library")
def test_chinese_words_are_marked_in_snippets(ask: Ask) -> None:
    result = render_outcome(ask("报销期限", strategy=Strategy.LEXICAL), uuid4())["results"][0]
    assert "<mark>报销期限</mark>" in result["snippet"]


@pytest.mark.parametrize(
    ("options", "field"),
    [({"query": " "}, "query"), ({"query": "x", "limit": 0}, "limit"), ({"query": "x", "limit": 101}, "limit"),
     ({"query": "x", "offset": 495}, "offset"), ({"query": "x" * 8001}, "query")],
)  # fmt: skip
def test_impossible_requests_name_the_field(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        SearchRequest(**options)  # type: ignore[arg-type]
    assert caught.value.errors[0].field == field
