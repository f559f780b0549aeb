"""Where reading a base through and the base's own indexes take equally long.

`knowledge.services.base_indexes.LARGE` follows from this table.
"""

from __future__ import annotations

from collections.abc import Sequence

from accounts.tenancy import tenant_scope
from benchmarks.progress import say
from benchmarks.speed.bench import Bench, request_for
from benchmarks.speed.comparison import SERVICE
from benchmarks.speed.filling import Filled, Wanted, filled
from benchmarks.speed.measurement import BLOCK, Times
from knowledge.models import KnowledgeBase
from knowledge.services.base_indexes import LARGE
from search.request import SearchRequest
from search.services.search import search

SHAPE = "crossing"
THROUGH, INDEXES = "read through", "own indexes"
_MOST_QUESTIONS = 50


def measure(bench: Bench) -> None:
    """Both ways at every size."""
    sizes = bench.options.crossing
    wanted = [Wanted(bench.actor, f"crossing {size}", size, indexed=True) for size in sizes]
    faster = []
    for base in filled(wanted, bench.material("en")):
        say(f"Reading through and indexes at {base.chunks:,} chunks …")
        times = _both_ways(bench, base)
        for system, spent in times.items():
            bench.results.add_times(SHAPE, base.chunks, system, spent)
        ratio = times[THROUGH].median / times[INDEXES].median
        bench.results.add(SHAPE, base.chunks, SERVICE, "through_over_indexes_p50", ratio, "ratio")
        faster += [base.chunks] if ratio > 1 else []
    at = f"from {min(faster):,} chunks on" if faster else "at none of the sizes"
    bench.results.remark(f"Own indexes are faster {at}; a base gets them at {LARGE:,}.")


def _both_ways(bench: Bench, base: Filled) -> dict[str, Times]:
    """Time of the retrieval alone, in turns by blocks of questions."""
    questions = bench.questions()[:_MOST_QUESTIONS]
    requests = [request_for(question, base.base.slug) for question in questions]
    columns = list(base.base.own_indexes)
    spent: dict[str, list[float]] = {THROUGH: [], INDEXES: []}
    try:
        for number in range(bench.options.rounds + 1):
            for begin in range(0, len(requests), BLOCK):
                for system, own in ((THROUGH, []), (INDEXES, columns)):
                    _use(base, own)
                    ms = _retrieve(base, requests[begin : begin + BLOCK])
                    spent[system] += ms if number else []
    finally:
        _use(base, columns)
    return {system: Times(ms) for system, ms in spent.items()}


def _use(base: Filled, columns: Sequence[str]) -> None:
    with tenant_scope(base.actor.tenant_id):
        KnowledgeBase.objects.filter(id=base.base.id).update(own_indexes=list(columns))


def _retrieve(base: Filled, requests: Sequence[SearchRequest]) -> list[float]:
    return [search(base.actor, request).timings_ms["retrieve"] for request in requests]
