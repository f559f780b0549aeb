"""What may be asked of a search beside the query: recency, one result a document, near-duplicates,
neighbours, facets, totals; on real passages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.access import Action, Actor
from accounts.tenancy import tenant_scope
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.chunks import edit_chunk
from knowledge.services.knowledge_bases import update_knowledge_base
from search.request import Strategy
from search.retrieval.filters import compile_filter
from search.services.search import SearchOutcome
from tests.search.conftest import Ask
from tests.workers import Workers

WORDS = Strategy.LEXICAL
YEARS = (2020, 2022, 2024)
NOTICE = (
    "The canteen is closed for repairs from Monday on. Until it opens again meals are served in the tent "
    "behind the main building, at the usual times and prices."
)


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def titles(outcome: SearchOutcome) -> list[str]:
    return [hit.chunk.document.filename for hit in outcome.hits]


def only(field: str, value: Any) -> Any:
    return compile_filter({"field": field, "op": "eq", "value": value})


@pytest.fixture
def yearly(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """The same rule as of three years, the oldest first; and an older one in the archive."""
    for number in YEARS:
        text = f"Herons wade. Rule of {number}."
        workers.ingest(keeper, base, text, f"{number}.txt", updated_at=year(number))
    workers.ingest(
        keeper, base, "Herons. Nothing else of 1990 is known about the rules of wading.", "1990.txt",
        updated_at=year(1990), metadata={"archive": True},
    )  # fmt: skip


@pytest.mark.usefixtures("yearly")
def test_full_recency_puts_the_newest_of_equals_first(ask: Ask) -> None:
    fresh = ask("herons wade", strategy=WORDS, recency=1.0)
    assert titles(fresh)[:3] == ["2024.txt", "2022.txt", "2020.txt"]
    assert (fresh.hits[0].recency, fresh.hits[-1].recency) == (1.0, 0.0)
    assert fresh.hits[-1].fused.score == 0.0


@pytest.mark.usefixtures("yearly")
def test_no_recency_changes_nothing(ask: Ask) -> None:
    plain, zero = (
        ask("herons wade", strategy=WORDS),
        ask("herons wade", strategy=WORDS, recency=0.0),
    )
    assert [(hit.chunk.id, hit.fused.score) for hit in plain.hits] == [
        (hit.chunk.id, hit.fused.score) for hit in zero.hits
    ]
    assert {hit.recency for hit in zero.hits} == {None}


@pytest.mark.usefixtures("yearly")
def test_age_is_measured_within_the_filter(ask: Ask) -> None:
    rule = compile_filter({"not": {"field": "metadata.archive", "op": "eq", "value": True}})
    inside = {hit.chunk.document.filename: hit for hit in _recent(ask, rule)}
    assert inside["2020.txt"].recency == 0.0, "the oldest of what the filter admits"
    everywhere = {hit.chunk.document.filename: hit for hit in _recent(ask, None)}
    recency = everywhere["2020.txt"].recency
    whole = (year(2024) - year(1990)).days
    assert recency == pytest.approx((year(2020) - year(1990)).days / whole)


def _recent(ask: Ask, condition: Any) -> list[Any]:
    return ask("herons wade", strategy=WORDS, recency=1.0, condition=condition).hits


def test_age_is_measured_within_what_the_reader_may_see(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    workers.ingest(keeper, base, "Herons wade.", updated_at=year(2020))
    workers.ingest(keeper, base, "Herons nest.", updated_at=year(2024))
    secret = "Herons of the board."
    workers.ingest(keeper, base, secret, principals=["group:board"], updated_at=year(1990))
    hits = ask("herons", strategy=WORDS, recency=0.5).hits
    assert sorted(hit.recency or 0.0 for hit in hits) == [0.0, 1.0]


@pytest.fixture
def notices(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """One notice in four layouts, one of another day, and others about the canteen."""
    layouts = (NOTICE, NOTICE.upper(), NOTICE.replace(" ", "  "), NOTICE.replace(",", ";"))
    for number, text in enumerate(layouts):
        workers.ingest(keeper, base, text, f"copy{number}.md", title="Notice")
    workers.ingest(keeper, base, NOTICE.replace("Monday", "3 May"), "other.md", title="Notice")
    for number in range(3):
        text = f"Canteen menu number {number}: soup, bread and the dish of day {number}."
        workers.ingest(keeper, base, text, f"menu{number}.md")


@pytest.mark.usefixtures("notices")
def test_collapsing_fills_the_limit(ask: Ask) -> None:
    plain = titles(ask("canteen closed for repairs", limit=4))
    assert sorted(plain).count("other.md") + sum("copy" in name for name in plain) == 4
    outcome = ask("canteen closed for repairs", limit=4, collapse_duplicates=True)
    found = titles(outcome)
    assert len(found) == 4
    assert sum("copy" in name for name in found) == 1
    assert "other.md" in found, "another day is another notice"
    (copies,) = [hit for hit in outcome.hits if "copy" in hit.chunk.document.filename]
    assert len(copies.duplicates) == 3
    assert copies.chunk.id not in copies.duplicates


@pytest.mark.usefixtures("notices")
def test_pages_of_collapsed_results_do_not_overlap(ask: Ask) -> None:
    whole = ask("canteen closed", limit=5, collapse_duplicates=True)
    pages = [
        ask("canteen closed", limit=2, offset=at, collapse_duplicates=True) for at in (0, 2, 4)
    ]
    paged = [hit.chunk.id for page in pages for hit in page.hits]
    assert paged == [hit.chunk.id for hit in whole.hits]


@pytest.fixture
def book(keeper: Actor, base: KnowledgeBase, workers: Workers) -> Document:
    """Five chapters, a chunk each; the third one is about herons."""
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, chunk_size=64, chunk_overlap=0)
    birds = ("Geese", "Storks", "Herons", "Cranes", "Swans")
    text = "\n\n".join(f"# {bird}\n\n{f'{bird} wade in the water. ' * 5}" for bird in birds)
    document = workers.ingest(keeper, base, text, "birds.md").document
    with tenant_scope(keeper.tenant_id):
        assert document.chunks.filter(live=True).count() == 5
    return document


def near(outcome: SearchOutcome) -> list[int]:
    return [chunk.ordinal for chunk in outcome.hits[0].neighbours]


def test_the_best_passage_stands_for_its_document_under_the_limit(
    keeper: Actor, base: KnowledgeBase, workers: Workers, book: Document, ask: Ask
) -> None:
    for number in range(3):
        workers.ingest(keeper, base, f"Note {number}: what wades is wet.", f"note{number}.txt")
    plain = ask("herons wade", limit=4)
    assert titles(plain).count("birds.md") > 1
    grouped = ask("herons wade", limit=4, group_by_document=True)
    assert sorted(titles(grouped)) == ["birds.md", "note0.txt", "note1.txt", "note2.txt"]
    (hit,) = [hit for hit in grouped.hits if hit.chunk.document_id == book.id]
    assert hit.chunk.ordinal == 2


def test_neighbours_come_in_the_order_of_the_document(book: Document, ask: Ask) -> None:
    assert ask("herons", strategy=WORDS).hits[0].neighbours == []
    assert near(ask("herons", strategy=WORDS, neighbours=1)) == [1, 3]
    assert near(ask("herons", strategy=WORDS, neighbours=5)) == [0, 1, 3, 4]
    assert near(ask("geese", strategy=WORDS, neighbours=2)) == [1, 2]


def test_a_neighbour_that_the_reader_may_not_see_is_not_shown(
    keeper: Actor, book: Document, ask: Ask
) -> None:
    with tenant_scope(keeper.tenant_id):
        Chunk.objects.filter(document=book, ordinal=3).update(principals=["group:board"])
        edit_chunk(actor=keeper, chunk=Chunk.objects.get(document=book, ordinal=1), enabled=False)
    reader = replace(
        keeper, actions=frozenset({Action.SEARCH, Action.READ}), may_assert_principals=False
    )
    assert near(ask("herons", reader, strategy=WORDS, neighbours=2)) == [0, 4]
    board = ask("herons", strategy=WORDS, neighbours=2, as_principals=["group:board"])
    assert near(board) == [0, 3, 4]


@pytest.mark.usefixtures("yearly")
def test_facets_come_with_the_results_whatever_the_query(ask: Ask) -> None:
    outcome = ask("2024", strategy=WORDS, limit=1, facets=("source", "updated_at"))
    assert len(outcome.hits) == 1
    source: Any = outcome.facets["source"]
    assert [(one["value"], one["documents"]) for one in source["values"]] == [("upload", 4)]
    narrowed = ask(
        "2024", strategy=WORDS, facets=("source",), condition=only("metadata.archive", True)
    )
    source = narrowed.facets["source"]
    assert [(one["value"], one["documents"]) for one in source["values"]] == [("upload", 1)]
    assert ask("2024", strategy=WORDS).facets == {}


@pytest.mark.usefixtures("yearly")
def test_a_total_is_exact_where_all_was_seen(ask: Ask) -> None:
    found = ask("wade", strategy=WORDS, limit=1).total
    assert found is not None
    assert (found.value, found.exact) == (4, True)
    none = ask("zeppelin", strategy=WORDS).total
    assert none is not None
    assert (none.value, none.exact) == (0, True)


def test_a_total_is_estimated_where_a_leg_was_cut(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    """130 rows with the word, 20 without; a leg gives 100."""
    rows = "\n\n".join(
        f"# {n}\n\n{'Heron' if n < 130 else 'Stork'} number {n}." for n in range(150)
    )
    with tenant_scope(keeper.tenant_id):
        update_knowledge_base(actor=keeper, base=base, chunk_size=32, chunk_overlap=0)
    document = workers.ingest(keeper, base, rows, "rows.md").document
    with tenant_scope(keeper.tenant_id):
        held = sum("Heron" in chunk.content for chunk in document.chunks.filter(live=True))
    assert held > 100
    found = ask("heron", strategy=WORDS).total
    assert found is not None
    assert (found.value, found.exact) == (held, False), "one word: its frequency"
    filtered = ask("heron", strategy=WORDS, condition=only("source", "upload")).total
    assert filtered is not None
    assert (filtered.value, filtered.exact) == (100, False), "what a filter leaves is not known"
