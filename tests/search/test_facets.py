"""Facets: the counts are those that a person counts, of what the caller may see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.access import Action, Actor, operator_actor
from accounts.models import Membership, Tenant
from accounts.tenancy import tenant_scope
from config.errors import InvalidInputError
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from search.access import build_scope
from search.retrieval.filters import compile_filter
from search.services.facets import FacetCounts, FacetRequest, count_facets, read_facets
from tests.conftest import ApiFactory
from tests.workers import Workers

URL = "/api/v1/search/facets/"


def store(base: KnowledgeBase, *languages: str, **facts: Any) -> Document:
    """A document with a passage for each language."""
    headings: Sequence[Sequence[str]] = facts.pop("headings", [[] for _ in languages])
    document = Document(knowledge_base=base, content_hash=f"{Document.objects.count()}", **facts)
    document.save()
    for n, (language, heading) in enumerate(zip(languages, headings, strict=True)):
        Chunk(
            knowledge_base=base, document=document, ordinal=n, content="x", start=0, end=1,
            language=language, heading_path=list(heading), principals=document.principals,
        ).save()  # fmt: skip
    return document


@pytest.fixture
def shelf(keeper: Actor, base: KnowledgeBase) -> KnowledgeBase:
    """Five documents, eight passages. One document, of two passages, is for a group alone."""
    with tenant_scope(keeper.tenant_id):
        store(
            base, "en", "zh", source="notion", author="李雷", headings=[["A"], ["A", "B"]],
            metadata={"status": "approved", "n": 7, "tags": ["红", "绿", "红"], "due": "2026-01-31"},
            source_created_at=datetime(2024, 12, 31, 23, 30, tzinfo=UTC),
        )  # fmt: skip
        store(
            base, "zh", source="notion", author="韩梅梅", breadcrumbs=["Wiki", "HR"],
            metadata={"status": "draft", "n": 2.5, "tags": "红"},
            source_created_at=datetime(2025, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        store(
            base, "en", "en", source="upload", author="李雷",
            metadata={"status": "approved", "n": 7.0, "flag": True, "tags": [], "odd": None},
            source_created_at=datetime(2025, 1, 15, tzinfo=UTC),
        )  # fmt: skip
        store(base, "en", source="web", author="", metadata={"n": "7"},
              source_created_at=datetime(2025, 3, 1, tzinfo=UTC))  # fmt: skip
        store(
            base, "de", "de", source="web", author="Secret", principals=["group:finance"],
            metadata={"status": "secret", "n": 1000}, source_created_at=datetime(2030, 1, 1, tzinfo=UTC),
        )  # fmt: skip
    return base


@pytest.fixture
def count(keeper: Actor) -> Any:
    """Count as the tenant's operator, or as another actor."""

    def run(*fields: str, actor: Actor | None = None, **options: Any) -> FacetCounts:
        actor = actor or keeper
        with tenant_scope(actor.tenant_id):
            return read_facets(actor, FacetRequest(fields=fields, **options))

    return run


def _pairs(facet: Any, key: str = "values") -> list[tuple[Any, int, int]]:
    return [(row["value"], row["documents"], row["chunks"]) for row in facet[key]]


@pytest.mark.usefixtures("shelf")
def test_texts_are_counted_the_most_frequent_first(count: Any) -> None:
    counts = count("source", "author", "breadcrumbs")
    assert (counts.documents, counts.chunks) == (4, 6)
    source, author, crumbs = counts.facets.values()
    assert _pairs(source) == [("notion", 2, 3), ("upload", 1, 2), ("web", 1, 1)]
    assert (source["further_values"], source["documents_without"]) == (0, 0)
    assert _pairs(author) == [("李雷", 2, 4), ("韩梅梅", 1, 1)]
    assert author["documents_without"] == 1
    assert _pairs(crumbs) == [("HR", 1, 1), ("Wiki", 1, 1)]


@pytest.mark.usefixtures("shelf")
def test_fields_of_passages_count_passages(count: Any) -> None:
    counts = count("language", "heading")
    language, heading = counts.facets.values()
    assert _pairs(language) == [("en", 3, 4), ("zh", 2, 2)]
    assert _pairs(heading) == [("A", 1, 2), ("B", 1, 1)]
    assert heading["documents_without"] == 3


@pytest.mark.usefixtures("shelf")
def test_metadata_keeps_its_types(count: Any) -> None:
    names = ("metadata.status", "metadata.n", "metadata.tags", "metadata.flag", "metadata.odd")
    status, number, tags, flag, odd = count(*names).facets.values()
    assert _pairs(status) == [("approved", 2, 4), ("draft", 1, 1)]
    assert "min" not in status
    assert _pairs(number) == [(7, 2, 4), ("7", 1, 1), (2.5, 1, 1)]
    assert (number["min"], number["max"]) == (2.5, 7)
    assert _pairs(tags) == [("红", 2, 3), ("绿", 1, 2)]
    assert tags["documents_without"] == 2
    assert _pairs(flag) == [(True, 1, 2)]
    assert _pairs(odd) == []


@pytest.mark.usefixtures("shelf")
def test_each_value_filters_to_its_count(count: Any) -> None:
    fields = (
        "source",
        "author",
        "language",
        "heading",
        "breadcrumbs",
        "metadata.n",
        "metadata.tags",
    )
    for field, facet in count(*fields).facets.items():
        for value, documents, chunks in _pairs(facet):
            condition = compile_filter({"field": field, "op": "eq", "value": value})
            narrowed = count(condition=condition)
            assert (narrowed.documents, narrowed.chunks) == (documents, chunks), (field, value)


@pytest.mark.usefixtures("shelf")
def test_times_are_counted_by_month_and_year(count: Any) -> None:
    created = count("created_at").facets["created_at"]
    assert _pairs(created, "months") == [("2024-12", 1, 2), ("2025-01", 2, 3), ("2025-03", 1, 1)]
    assert _pairs(created, "years") == [("2024", 1, 2), ("2025", 3, 4)]
    assert datetime.fromisoformat(created["min"]) == datetime(2024, 12, 31, 23, 30, tzinfo=UTC)
    assert datetime.fromisoformat(created["max"]) == datetime(2025, 3, 1, tzinfo=UTC)


@pytest.mark.usefixtures("shelf")
def test_a_document_for_a_group_is_counted_for_that_group_alone(keeper: Actor, count: Any) -> None:
    reader = replace(keeper, actions=frozenset({Action.SEARCH}), may_assert_principals=False)
    finance = ["group:finance"]
    seen = count("source", "metadata.n", as_principals=finance)
    assert _pairs(seen.facets["source"])[1] == ("web", 2, 3)
    assert seen.facets["metadata.n"]["max"] == 1000
    denied = count("source", actor=reader, as_principals=finance)
    assert denied.documents == 4
    assert "as_principals" in (denied.warning or "")


def test_only_what_search_sees_is_counted(keeper: Actor, shelf: KnowledgeBase, count: Any) -> None:
    with tenant_scope(keeper.tenant_id):
        Chunk.objects.filter(document__author="韩梅梅").update(enabled=False)
        Chunk.objects.filter(document__source="upload", ordinal=0).update(live=False)
        other = create_knowledge_base(actor=keeper, name="Archive")
        store(other, "en", source="old")
        KnowledgeBase.objects.filter(id=other.id).update(status=KnowledgeBase.Status.ARCHIVED)
    assert _pairs(count("source").facets["source"]) == [
        ("notion", 1, 2), ("upload", 1, 1), ("web", 1, 1),
    ]  # fmt: skip
    with pytest.raises(InvalidInputError):
        count("source", knowledge_bases=[other.slug])


def test_a_filter_narrows_the_counts(keeper: Actor, shelf: KnowledgeBase, count: Any) -> None:
    tree: dict[str, Any] = {"or": [{"field": "metadata.tags", "op": "eq", "value": "红"},
                   {"field": "language", "op": "eq", "value": "en"}]}  # fmt: skip
    counts = count("author", condition=compile_filter(tree))
    assert (counts.documents, counts.chunks) == (4, 6)
    tree = {"field": "author", "op": "eq", "value": "李雷"}
    with tenant_scope(keeper.tenant_id):
        scope, _ = build_scope(keeper, [shelf.slug], None)
        facets: Any = count_facets(scope, compile_filter(tree), ["source", "source"], 10)
    assert list(facets) == ["source"]
    assert _pairs(facets["source"]) == [("notion", 1, 2), ("upload", 1, 2)]


def test_a_query_counts_what_holds_its_words(
    keeper: Actor, base: KnowledgeBase, workers: Workers, count: Any
) -> None:
    workers.ingest(keeper, base, "差旅费报销期限为三十天。", "travel.txt", source="wiki")
    workers.ingest(keeper, base, "Invoices are kept for ten years.", "invoices.txt", source="web")
    assert _pairs(count("source", query="報銷").facets["source"]) == [("wiki", 1, 1)]
    assert _pairs(count("source", query="invoice").facets["source"]) == [("web", 1, 1)]
    assert count("source", query="?!").documents == 0
    assert count("source", query=" ").documents == 2


@pytest.mark.usefixtures("shelf")
def test_values_come_in_pages(count: Any) -> None:
    pages = [count("source", limit=2, offset=offset).facets["source"] for offset in (0, 2, 9)]
    assert [[row["value"] for row in page["values"]] for page in pages] == [
        ["notion", "upload"], ["web"], [],
    ]  # fmt: skip
    assert [page["further_values"] for page in pages] == [1, 0, 0]


@pytest.mark.usefixtures("shelf")
def test_no_base_no_counts(keeper: Actor, count: Any) -> None:
    nobody = replace(keeper, knowledge_base_ids=frozenset())
    counts = count("source", "created_at", "metadata.n", actor=nobody)
    assert (counts.documents, counts.chunks) == (0, 0)
    assert counts.facets["created_at"] == {
        "type": "time", "min": None, "max": None, "years": [], "months": [],
    }  # fmt: skip


def test_stranger_sees_nothing(shelf: KnowledgeBase, stranger: Membership, api: ApiFactory) -> None:
    client = api("search", tenant=stranger.tenant)
    answer = client.get(URL, {"fields": "source,author"}).json()
    assert (answer["documents"], answer["chunks"]) == (0, 0)
    assert [facet["values"] for facet in answer["facets"].values()] == [[], []]
    for name in (shelf.slug, str(shelf.id)):
        assert client.get(URL, {"knowledge_bases": name}).status_code == 400


def test_over_http(tenant: Tenant, api: ApiFactory) -> None:
    keeper = operator_actor(tenant.id)
    with tenant_scope(tenant.id):
        base = create_knowledge_base(actor=keeper, name="Main")
        store(base, "zh", source="notion", metadata={"状态": "草稿"})
        store(base, "en", source="web")
    tree = json.dumps({"field": "source", "op": "ne", "value": "web"})
    parameters = {"knowledge_bases": base.slug, "fields": "metadata.状态, source", "filter": tree}
    assert api("search").get(URL, parameters).json() == {
        "documents": 1,
        "chunks": 1,
        "facets": {
            "metadata.状态": {
                "type": "metadata", "values": [{"value": "草稿", "documents": 1, "chunks": 1}],
                "further_values": 0, "documents_without": 0,
            },
            "source": {
                "type": "text", "values": [{"value": "notion", "documents": 1, "chunks": 1}],
                "further_values": 0, "documents_without": 0,
            },
        },
    }  # fmt: skip
    assert list(api("search").get(URL).json()["facets"]) == [
        "source", "content_type", "language", "author", "created_at", "updated_at",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "field", "named"),
    [
        ({"fields": "source,colour"}, "fields", "'colour'"),
        ({"fields": ",".join(f"metadata.k{n}" for n in range(11))}, "fields", "10"),
        ({"filter": "{"}, "filter", "JSON"),
        ({"filter": "[]"}, "filter", "object"),
        ({"filter": "[" * 5000}, "filter", "JSON"),
        ({"filter": '{"field": "metadata.n", "op": "gt", "value": NaN}'}, "filter", "JSON"),
        (
            {"filter": '{"field": "metadata.n", "op": "gt", "value": 1e999}'},
            "filter.value",
            "finite",
        ),
        ({"filter": '{"field": "title", "op": "like", "value": "x"}'}, "filter.op", "'like'"),
        ({"limit": "0"}, "limit", "1"),
        ({"offset": "-1"}, "offset", "0"),
        ({"knowledge_bases": "nowhere"}, "knowledge_bases", "nowhere"),
    ],
)
def test_a_fault_is_named(
    tenant: Tenant, api: ApiFactory, parameters: dict[str, str], field: str, named: str
) -> None:
    answer = api("search").get(URL, parameters)
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert error["field"] == field
    assert named in error["message"]
