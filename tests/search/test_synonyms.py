"""Synonyms: what they find, where they rank, where they hold, and who may keep them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.access import Actor, operator_actor
from accounts.models import AuditEvent, Membership, Tenant
from accounts.tenancy import tenant_scope
from config.errors import ConflictError, ForbiddenError, InvalidInputError
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import create_knowledge_base
from search.models import SynonymSet
from search.request import SearchRequest, Strategy
from search.retrieval import synonyms as rules
from search.retrieval.query import Words, read_words
from search.services import synonyms as service
from search.services.facets import FacetRequest, read_facets
from search.services.search import SearchOutcome
from search.services.synonym_files import export_synonyms, import_synonyms
from search.services.why_not import explain_missing
from search.snippets import make_snippet
from tests.conftest import ApiFactory
from tests.search.conftest import Ask
from tests.workers import Workers

PTO = ("PTO", "paid time off", "annual leave", "年假")
TEXTS = {
    "pto.txt": "Unused PTO of employees lapses in spring.",
    "leave.txt": "Unused annual leaves of employees lapse.",
    "off.txt": "Unused paid time off of employees lapses.",
    "chinese.txt": "员工每年的年假应在春季之前休完。",
    "annual.txt": "The annual report on pumps is printed.",
    "young.txt": "少年假装生病而没有去学校。",
}


@pytest.fixture
def library(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    """Short documents of like length."""
    for filename, text in TEXTS.items():
        workers.ingest(keeper, base, text, filename)


def keep(keeper: Actor, *terms: str, **fields: Any) -> SynonymSet:
    with tenant_scope(keeper.tenant_id):
        return service.create_synonym_set(actor=keeper, terms=list(terms or PTO), **fields)


def names(outcome: SearchOutcome) -> list[str]:
    return [hit.chunk.document.filename for hit in outcome.hits]


def faults(error: pytest.ExceptionInfo[InvalidInputError]) -> list[tuple[str, str]]:
    return [(fault.field, fault.message) for fault in error.value.errors]


@pytest.mark.usefixtures("library")
def test_an_abbreviation_finds_its_meanings_in_two_languages(keeper: Actor, ask: Ask) -> None:
    assert names(ask("PTO", strategy=Strategy.LEXICAL)) == ["pto.txt"]
    keep(keeper)
    found = ask("PTO", strategy=Strategy.LEXICAL)
    assert names(found)[0] == "pto.txt", "the very word comes first"
    assert {"leave.txt", "off.txt", "chinese.txt"} <= set(names(found))
    assert found.synonyms == [("PTO", ["paid time off", "annual leave", "年假"])]


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("ｐｔｏ", "leave.txt"),  # full width
        ("annual leaves of staff", "pto.txt"),  # stemmed
        ("Paid Time-Off", "pto.txt"),
        ("年假有几天？", "pto.txt"),
        ("員工年假", "off.txt"),
        ("pto？", "chinese.txt"),
    ],
)
@pytest.mark.usefixtures("library")
def test_a_term_is_recognised_however_it_is_written(
    keeper: Actor, ask: Ask, query: str, finds: str
) -> None:
    assert finds not in names(ask(query, strategy=Strategy.LEXICAL))
    keep(keeper)
    assert finds in names(ask(query, strategy=Strategy.LEXICAL))


@pytest.mark.parametrize(
    "query", ["annual report on leave", "time is paid off", "少年假装", "annual", "year"]
)
@pytest.mark.usefixtures("library")
def test_words_that_are_apart_are_no_phrase(keeper: Actor, ask: Ask, query: str) -> None:
    keep(keeper)
    assert ask(query, strategy=Strategy.LEXICAL).synonyms == []


@pytest.mark.usefixtures("library")
def test_the_longest_term_counts_and_asked_terms_are_not_added(keeper: Actor, ask: Ask) -> None:
    keep(keeper, "time off", "holiday")
    keep(keeper)
    assert ask("paid time off or PTO", strategy=Strategy.LEXICAL).synonyms == [
        ("paid time off", ["annual leave", "年假"]),
        ("PTO", ["annual leave", "年假"]),
    ]


def test_a_function_word_is_meant_as_it_is_written(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    workers.ingest(keeper, base, "The information technology department repairs laptops.")
    keep(keeper, "IT", "information technology")
    assert ask("does it break", strategy=Strategy.LEXICAL).synonyms == []
    found = ask("IT", strategy=Strategy.LEXICAL)
    assert found.synonyms == [("IT", ["information technology"])]
    assert len(found.hits) == 1


@pytest.mark.usefixtures("library")
def test_a_synonym_weighs_less_than_what_was_asked_for(keeper: Actor, base: KnowledgeBase) -> None:
    with tenant_scope(keeper.tenant_id):
        asked = read_words("PTO", [base.id]).weights
    keep(keeper)
    with tenant_scope(keeper.tenant_id):
        words = read_words("PTO", [base.id])
    (whole,) = asked.values()
    assert asked.items() <= words.weights.items()
    added = [weight for one, weight in words.weights.items() if one not in asked]
    assert max(added) <= rules.SHARE * whole
    alone = rules.added_weights(
        [rules.Expansion("PTO", ("paid time off",))], words.languages, words.frequencies, 6
    )
    assert sum(alone.values()) == pytest.approx(rules.SHARE * whole)


@pytest.mark.usefixtures("library")
def test_synonyms_only_add_results(keeper: Actor, ask: Ask) -> None:
    queries = [
        "PTO lapses",
        "annual leave in spring",
        "年假",
        "report",
        "time",
        "员工 PTO pumps",
        "学校",
    ]
    before = {query: set(names(ask(query, strategy=Strategy.LEXICAL))) for query in queries}
    keep(keeper)
    keep(keeper, "report", "spring", "学校")
    keep(keeper, "employees", "staff", "员工", one_way=True)
    for query in queries:
        assert before[query] <= set(names(ask(query, strategy=Strategy.LEXICAL))), query


@pytest.mark.usefixtures("library")
def test_found_synonyms_are_marked(keeper: Actor, ask: Ask) -> None:
    keep(keeper)
    outcome = ask("PTO", strategy=Strategy.LEXICAL)
    (hit,) = [hit for hit in outcome.hits if hit.chunk.document.filename == "leave.txt"]
    snippet = make_snippet(hit.chunk.content, outcome.terms, outcome.languages)
    assert "<mark>annual</mark> <mark>leaves</mark>" in snippet


@pytest.mark.usefixtures("library")
def test_the_vectors_take_no_part(keeper: Actor, ask: Ask) -> None:
    before = names(ask("PTO", strategy=Strategy.SEMANTIC))
    keep(keeper)
    after = ask("PTO", strategy=Strategy.SEMANTIC)
    assert names(after) == before
    assert after.synonyms == []


@pytest.mark.usefixtures("library")
def test_one_way_leads_from_the_first_term_only(keeper: Actor, ask: Ask) -> None:
    keep(keeper, "absence", "PTO", "annual leave", one_way=True)
    assert set(names(ask("absence", strategy=Strategy.LEXICAL))) >= {"pto.txt", "leave.txt"}
    assert names(ask("PTO", strategy=Strategy.LEXICAL)) == ["pto.txt"]


@pytest.mark.usefixtures("library")
def test_what_is_switched_off_or_deleted_holds_no_more(keeper: Actor, ask: Ask) -> None:
    synonyms = keep(keeper)
    with tenant_scope(keeper.tenant_id):
        service.change_synonym_set(actor=keeper, synonyms=synonyms, enabled=False)
    assert ask("PTO", strategy=Strategy.LEXICAL).synonyms == []
    with tenant_scope(keeper.tenant_id):
        service.change_synonym_set(actor=keeper, synonyms=synonyms, enabled=True)
    assert ask("PTO", strategy=Strategy.LEXICAL).synonyms != []
    with tenant_scope(keeper.tenant_id):
        service.delete_synonym_set(actor=keeper, synonyms=synonyms)
    assert ask("PTO", strategy=Strategy.LEXICAL).synonyms == []
    with tenant_scope(keeper.tenant_id):
        actions = AuditEvent.objects.filter(target_id=synonyms.id).values_list("action", flat=True)
        assert sorted(actions) == [
            "synonyms.changed", "synonyms.changed", "synonyms.created", "synonyms.deleted",
        ]  # fmt: skip


def test_a_set_of_one_base_finds_nothing_in_another(
    keeper: Actor, base: KnowledgeBase, workers: Workers, ask: Ask
) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    for where in (base, other):
        workers.ingest(keeper, where, f"Annual leave as {where.slug} has it.", "leave.txt")
        workers.ingest(keeper, where, f"PTO as {where.slug} has it.", "pto.txt")
    keep(keeper, knowledge_base=base)
    both = ask("PTO", strategy=Strategy.LEXICAL)
    found = [(hit.chunk.knowledge_base.slug, hit.chunk.document.filename) for hit in both.hits]
    assert sorted(found) == [("main", "leave.txt"), ("main", "pto.txt"), ("other", "pto.txt")]
    assert set(found[:2]) == {("main", "pto.txt"), ("other", "pto.txt")}
    assert both.synonyms
    alone = ask("PTO", strategy=Strategy.LEXICAL, knowledge_bases=["other"])
    assert (names(alone), alone.synonyms) == (["pto.txt"], [])
    assert len(ask("PTO", strategy=Strategy.LEXICAL, knowledge_bases=["main"]).hits) == 2
    with tenant_scope(keeper.tenant_id):
        assert read_facets(keeper, FacetRequest(query="PTO")).documents == 3
    missing = {
        hit.chunk.knowledge_base.slug: hit.chunk
        for hit in ask("annual leave", strategy=Strategy.LEXICAL).hits
        if hit.chunk.document.filename == "leave.txt"
    }
    request = SearchRequest("PTO", strategy=Strategy.LEXICAL)
    answer = explain_missing(keeper, request, None, chunk_id=missing["main"].id)
    assert (answer.verdict.code, answer.rank, answer.legs["lexical"].rank) == ("returned", 3, 3)
    (words,) = [check for check in answer.checks if check.check == "words"]
    assert words.passed
    assert "By synonyms in the passage: annual, leav" in words.detail
    answer = explain_missing(keeper, request, None, chunk_id=missing["other"].id)
    assert answer.verdict.code == "not_matched"


@pytest.mark.usefixtures("library")
def test_a_search_costs_no_statement_more(keeper: Actor, ask: Ask) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            ask("PTO and pumps", strategy=Strategy.LEXICAL)
        return len(captured)

    ask("PTO", strategy=Strategy.LEXICAL)
    without = count()
    keep(keeper)
    assert count() == without


@pytest.mark.usefixtures("library")
def test_an_index_of_words_is_asked_for_synonyms_beside_the_asked(
    keeper: Actor, base: KnowledgeBase, ask: Ask
) -> None:
    keep(keeper)
    with tenant_scope(keeper.tenant_id):
        candidates = read_words("PTO", [base.id]).candidates
        assert candidates.query.startswith("('pto') | (")
        KnowledgeBase.objects.filter(id=base.id).update(own_indexes=["lexemes"])
    found = names(ask("PTO", strategy=Strategy.LEXICAL))
    assert found[0] == "pto.txt"
    assert {"leave.txt", "off.txt", "chinese.txt"} <= set(found)


def test_a_synonym_that_is_everywhere_takes_no_place_from_the_words_asked_for() -> None:
    words = Words(
        terms=("technolog", "it"),
        frequencies={"technolog": 3, "it": 90_000},
        chunks=100_000,
        added=frozenset({"it"}),
    )
    candidates = words.candidates
    assert candidates.query == "'technolog'"
    assert (candidates.terms, candidates.complete) == (("technolog", "it"), False)


def test_another_tenant_is_not_concerned(
    keeper: Actor, stranger: Membership, workers: Workers, ask: Ask
) -> None:
    keep(keeper)
    rival = operator_actor(stranger.tenant_id)
    with tenant_scope(rival.tenant_id):
        base = create_knowledge_base(actor=rival, name="Rival")
    workers.ingest(rival, base, TEXTS["leave.txt"])
    outcome = ask("PTO", rival, strategy=Strategy.LEXICAL)
    assert (outcome.hits, outcome.synonyms) == ([], [])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["alone"], "Give 2 to 20 terms"),
        (["alone", "  "], "Give 2 to 20 terms"),
        ([f"word{n}" for n in range(21)], "Give 2 to 20 terms"),
        (["PTO", "x" * 101], "longer than 100 characters"),
        (["PTO", "?!"], "no letter or digit"),
        (["PTO", "a|b"], "holds a sign"),
        (["PTO", "a\x00b"], "holds a sign"),
        (["PTO", "ｐｔｏ"], "“ｐｔｏ” is the same as “PTO”"),
        (["差旅费", "差旅費"], "is the same as"),
        (["e-mail", "E mail"], "is the same as"),
    ],
)
def test_terms_that_cannot_be_kept_are_named(keeper: Actor, terms: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        keep(keeper, *terms)
    ((field, told),) = faults(error)
    assert field == "terms"
    assert message in told


def test_a_term_is_in_one_set_only(keeper: Actor, base: KnowledgeBase) -> None:
    first = keep(keeper)
    with pytest.raises(InvalidInputError) as error:
        keep(keeper, "vacation", "Paid  Time Off")
    ((field, told),) = faults(error)
    assert field == "terms"
    assert "“Paid Time Off” is in another set already: PTO, paid time off, annual leave" in told
    assert str(first.id) in told
    with pytest.raises(InvalidInputError, match="cannot be saved"):
        keep(keeper, "年假", "假期", knowledge_base=base)
    keep(keeper, "absence", "PTO", one_way=True)  # where a one-way set leads to is not its own
    with tenant_scope(keeper.tenant_id):
        service.change_synonym_set(actor=keeper, synonyms=first, note="of the handbook")


def test_two_bases_may_mean_different_things(keeper: Actor, base: KnowledgeBase) -> None:
    with tenant_scope(keeper.tenant_id):
        other = create_knowledge_base(actor=keeper, name="Other")
    keep(keeper, "PTO", "paid time off", knowledge_base=base)
    keep(keeper, "PTO", "power take-off", knowledge_base=other)
    with pytest.raises(InvalidInputError) as error:
        keep(keeper, "PTO", "Patent Office")
    assert len(faults(error)) == 2


def test_sets_are_limited(keeper: Actor, monkeypatch: Any) -> None:
    monkeypatch.setattr(service, "MAX_SETS", 1)
    keep(keeper)
    with pytest.raises(ConflictError, match="at most 1 sets"):
        keep(keeper, "car", "automobile")


def test_one_bound_to_a_base_keeps_its_sets_only(keeper: Actor, base: KnowledgeBase) -> None:
    shared = keep(keeper)
    own = keep(keeper, "car", "automobile", knowledge_base=base)
    bound = replace(keeper, knowledge_base_ids=frozenset({base.id}))
    with tenant_scope(keeper.tenant_id):
        assert list(service.visible_synonym_sets(bound)) == [own]
        with pytest.raises(InvalidInputError) as error:
            service.create_synonym_set(actor=bound, terms=["lorry", "truck"])
        assert faults(error)[0][0] == "knowledge_base"
        with pytest.raises(InvalidInputError) as error:
            service.create_synonym_set(actor=bound, terms=["PTO", "x"], knowledge_base=base)
        assert str(shared.id) not in faults(error)[0][1], "it may not see that set"
        reader = replace(keeper, actions=frozenset({"search", "read"}))  # type: ignore[arg-type]
        with pytest.raises(ForbiddenError):
            service.create_synonym_set(actor=reader, terms=["lorry", "truck"])


def test_a_file_is_exported_and_imported(keeper: Actor, base: KnowledgeBase) -> None:
    keep(keeper, note='Said "PTO", meant leave')
    keep(keeper, "car", "automobile, new", one_way=True, enabled=False, knowledge_base=base)
    with tenant_scope(keeper.tenant_id):
        text = export_synonyms(keeper)
        assert text.splitlines()[0] == "terms,knowledge_base,one_way,enabled,note"
        again = import_synonyms(keeper, text.encode())
        assert [(row.row, row.outcome) for row in again] == [(2, "unchanged"), (3, "unchanged")]
        SynonymSet.objects.all().delete()
        assert {row.outcome for row in import_synonyms(keeper, text.encode())} == {"created"}
        assert export_synonyms(keeper) == text


def test_bad_rows_are_named_and_good_ones_kept(keeper: Actor) -> None:
    data = (
        "\ufeffTerms,Enabled,Knowledge_base\r\n"
        "PTO|annual leave|年假,true,\r\n"
        "alone,true,\r\n"
        "\r\n"
        "car|automobile,perhaps,\r\n"
        "lorry|truck,no,nowhere\r\n"
        "annual leave|vacation,,\r\n"
        "年假|Annual Leaves|pto|annual leave,,\r\n"
        "pto|年假|Annual  leave,no,\r\n"
    ).encode()
    with tenant_scope(keeper.tenant_id):
        rows = {row.row: row for row in import_synonyms(keeper, data)}
        kept = SynonymSet.objects.get()
    assert (rows[2].outcome, rows[2].set_id) == ("created", kept.id)
    assert {number: row.errors[0].field for number, row in rows.items() if row.errors} == {
        3: "terms", 5: "enabled", 6: "knowledge_base", 7: "terms", 8: "terms",
    }  # fmt: skip
    assert (rows[9].outcome, kept.enabled) == ("changed", False)


@pytest.mark.parametrize(
    "data",
    [b"", b"words\na|b\n", "terms\nPTO|é\n".encode("latin-1"), b'terms\n"a|b', b"terms\n\x00"],
)
def test_a_file_that_cannot_be_read_is_refused(keeper: Actor, data: bytes) -> None:
    with tenant_scope(keeper.tenant_id), pytest.raises(InvalidInputError) as error:
        import_synonyms(keeper, data)
    assert faults(error)[0][0] == "file"


def test_over_http(tenant: Tenant, api: ApiFactory) -> None:
    client = api("write", "read", "search")
    base = client.post("/api/v1/knowledge-bases/", {"name": "Main"}, format="json").json()
    body = {"terms": ["PTO", "annual leave"], "knowledge_base": "main", "note": "HR"}
    made = client.post("/api/v1/synonyms/", body, format="json")
    assert made.status_code == 201
    synonyms = made.json()
    assert (synonyms["terms"], synonyms["knowledge_base"]) == (["PTO", "annual leave"], "main")
    assert (synonyms["one_way"], synonyms["enabled"]) == (False, True)
    url = f"/api/v1/synonyms/{synonyms['id']}/"
    assert client.get(url).json() == synonyms
    changed = client.patch(url, {"enabled": False, "knowledge_base": None}, format="json").json()
    assert (changed["enabled"], changed["knowledge_base"]) == (False, None)
    listed = client.get("/api/v1/synonyms/").json()["results"]
    assert [one["id"] for one in listed] == [synonyms["id"]]
    narrowed = client.get(f"/api/v1/synonyms/?knowledge_base={base['id']}").json()["results"]
    assert narrowed == []
    for wrong, field in (
        ({"terms": ["pto", "leave"]}, "terms"),
        ({"terms": ["alone"]}, "terms"),
        ({}, "terms"),
        ({"terms": ["car", "automobile"], "knowledge_base": "nowhere"}, "knowledge_base"),
    ):
        refused = client.post("/api/v1/synonyms/", wrong, format="json")
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == field
    assert client.delete(url).status_code == 204
    assert client.get(url).status_code == 404


def test_files_over_http(tenant: Tenant, api: ApiFactory) -> None:
    client = api("write")

    def send(text: str) -> Any:
        file = SimpleUploadedFile("synonyms.csv", text.encode())
        return client.post("/api/v1/synonyms/import/", {"file": file}, format="multipart")

    answer = send("terms\nPTO|annual leave\nalone\n")
    assert answer.status_code == 200
    good, bad = answer.json()["results"]
    assert (good["row"], good["outcome"]) == (2, "created")
    assert bad["row"] == 3
    assert bad["errors"][0]["field"] == "terms"
    assert send("terms\nalone\n").status_code == 400
    assert client.post("/api/v1/synonyms/import/").json()["errors"][0]["field"] == "file"
    exported = client.get("/api/v1/synonyms/export/")
    assert exported["Content-Type"] == "text/csv; charset=utf-8"
    assert "PTO | annual leave,,false,true," in exported.content.decode()


def test_the_answer_tells_what_was_added(
    owner: Membership, workers: Workers, api: ApiFactory, settings: Any, tmp_path: Any
) -> None:
    storage = "django.core.files.storage.FileSystemStorage"
    place = {"BACKEND": storage, "OPTIONS": {"location": str(tmp_path / "originals")}}
    settings.STORAGES = {**settings.STORAGES, "default": place}
    actor = operator_actor(owner.tenant_id)
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name="Main")
    workers.ingest(actor, base, TEXTS["leave.txt"])
    keep(actor)
    client = api("search")
    body = {"query": "pto", "strategy": "lexical"}
    answer = client.post("/api/v1/search/", body, format="json").json()
    added = ["paid time off", "annual leave", "年假"]
    assert answer["synonyms"] == [{"term": "pto", "added": added}]
    assert "<mark>annual</mark>" in answer["results"][0]["snippet"]
    other = client.post("/api/v1/search/", {**body, "query": "pumps"}, format="json").json()
    assert "synonyms" not in other
