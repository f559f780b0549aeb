"""How far to look in a large base: passages scored for a question's words, steps in the vector index.

`search.retrieval.candidates.BUDGET` and the `ef_search` of the vector leg follow from these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from accounts.tenancy import tenant_scope
from benchmarks.progress import say
from benchmarks.speed.bench import Bench
from benchmarks.speed.by_hand import ByHand, connected
from benchmarks.speed.comparison import SERVICE, SQL
from benchmarks.speed.filling import Filled
from benchmarks.speed.material import Question
from benchmarks.speed.measurement import Times, mean, overlap, recall, timed
from providers.base import Vectors
from search.access import build_scope
from search.retrieval.candidates import choose_candidates
from search.retrieval.legs import Scored, lexical_leg, read_through
from search.retrieval.query import Words, read_words
from search.retrieval.searchable import Searchable

BUDGETS = (1_000, 2_000, 5_000, 10_000, 20_000)
EF_SEARCH = (100, 200, 300, 400, 600)
_DEPTH = 100


def measure(bench: Bench) -> None:
    """Both tables, on the base that filters are measured on."""
    base = bench.base(bench.options.filtered)
    if not base.base.own_indexes:
        bench.results.remark(f"{base.chunks:,} chunks have no indexes of their own: their depths were not measured.")  # fmt: skip
        return
    say("Budgets of passages to score …")
    with tenant_scope(base.actor.tenant_id):
        _measure_budgets(bench, base)
    say("Steps in the vector index …")
    _measure_steps(bench, base)


def _measure_budgets(bench: Bench, base: Filled) -> None:
    scope, _ = build_scope(base.actor, [base.base.slug], None)
    searchable = Searchable(scope, (base.base.id,))
    asked = [read_words(question.text, [base.base.id]) for question in bench.questions()]
    asked = [words for words in asked if words.weights]
    complete = [_ids(read_through(searchable, words.weights, None, _DEPTH).lexical) for words in asked]  # fmt: skip
    for budget in BUDGETS:
        for _ in range(2):  # the first pass warms up
            timed_found = [timed(_by_budget, searchable, words, budget) for words in asked]
        shape = f"budget {budget:,}"
        bench.results.add_times(shape, base.chunks, SERVICE, Times([ms for ms, _ in timed_found]))
        for limit in (10, 100):
            shares = [
                overlap(right, ours, limit)
                for right, (_, ours) in zip(complete, timed_found, strict=True)
            ]
            bench.results.add(shape, base.chunks, SERVICE, f"overlap@{limit}", mean(shares), "share")  # fmt: skip


def _by_budget(searchable: Searchable, words: Words, budget: int) -> list[UUID]:
    candidates = choose_candidates(
        tuple(words.frequencies), words.frequencies, words.chunks, budget
    )
    return _ids(lexical_leg(searchable, candidates, words.weights, _DEPTH))


def _ids(ranking: Sequence[Scored]) -> list[UUID]:
    return [scored.chunk_id for scored in ranking]


def _measure_steps(bench: Bench, base: Filled) -> None:
    """By hand, as the product does not let this be chosen."""
    questions = bench.questions()
    vectors = bench.embedder.embed_queries([question.text for question in questions])
    with connected() as link:
        hand = ByHand(link, base, bench.embedder, "en")
        asked = list(zip(questions, vectors, strict=True))
        right = [hand.exactly_nearest(question, vector, 10) for question, vector in asked]
        for steps in EF_SEARCH:
            link.execute(f"SET hnsw.ef_search = {steps}".encode())
            for _ in range(2):  # the first pass warms up
                found = [timed(_nearest, hand, *one) for one in asked]
            shape = f"ef_search {steps}"
            bench.results.add_times(shape, base.chunks, SQL, Times([ms for ms, _ in found]))
            shares = [recall(ours, wanted) for (_, ours), wanted in zip(found, right, strict=True)]
            bench.results.add(shape, base.chunks, SQL, "recall@10", mean(shares), "share")


def _nearest(hand: ByHand, question: Question, vector: Vectors) -> list[UUID]:
    return [chunk_id for chunk_id, _ in hand.nearest(question, vector)]
