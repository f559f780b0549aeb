"""The same questions to the product over HTTP, to its service, and to hand-written SQL, in turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.speed.bench import Bench, request_for
from benchmarks.speed.by_hand import ByHand, connected
from benchmarks.speed.filling import Filled
from benchmarks.speed.material import Question
from benchmarks.speed.measurement import Times, alternate, mean, overlap, recall
from search.request import Strategy
from search.services.search import search

HTTP, SERVICE, SQL, BUDGETED, EMBEDDER = "http", "service", "sql", "sql budgeted", "embedder"
_WIDE = 100  # a larger limit that has to be filled, too
_WIDE_QUESTIONS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """Questions to bases in turn, reported as one shape. `size` counts all chunks."""

    shape: str
    size: int
    language: str
    bases: Sequence[Filled]
    questions: Sequence[Question]

    @property
    def count(self) -> int:
        """So many asks put every question, and ask every base."""
        return max(len(self.questions), len(self.bases))

    def of(self, number: int) -> tuple[Filled, Question]:
        """The n-th question and the base that it goes to."""
        return self.bases[number % len(self.bases)], self.questions[number % len(self.questions)]


def compare(bench: Bench, case: Case) -> None:
    """Times end to end, their ratios, and where the product's own time goes."""
    steps: defaultdict[str, list[float]] = defaultdict(list)
    with connected() as link:
        hands = [ByHand.as_usual(link, base, bench.embedder, case.language) for base in case.bases]
        calls = {
            HTTP: over_http(bench, case),
            SERVICE: _by_service(case, steps),
            SQL: _by_hand(case, hands),
            BUDGETED: _by_hand(case, [replace(hand, budgeted=True) for hand in hands]),
            EMBEDDER: lambda number: bench.embedder.embed_queries([case.of(number)[1].text]),
        }
        if hands[0].plain:
            del calls[BUDGETED]  # scans have no candidates
        times = alternate(calls, case.count, max(1, bench.options.rounds * len(case.questions) // case.count))  # fmt: skip
    _report(bench, case, times, steps)


def over_http(bench: Bench, case: Case) -> Callable[[int], object]:
    """A client that asks the case's questions over a connection of its own."""
    client = bench.client()
    keys = [bench.key(base.actor) for base in case.bases]

    def ask(number: int) -> object:
        base, question = case.of(number)
        return client.search(keys[number % len(keys)], base.base.slug, question)

    return ask


def _by_service(case: Case, steps: defaultdict[str, list[float]]) -> Callable[[int], object]:
    def ask(number: int) -> object:
        base, question = case.of(number)
        outcome = search(base.actor, request_for(question, base.base.slug))
        for step, ms in outcome.timings_ms.items():
            steps[step].append(ms)
        return outcome

    return ask


def _by_hand(case: Case, hands: Sequence[ByHand]) -> Callable[[int], object]:
    return lambda number: hands[number % len(hands)].search(case.of(number)[1])


def _report(
    bench: Bench, case: Case, times: dict[str, Times], steps: dict[str, list[float]]
) -> None:
    results = bench.results
    for system, spent in times.items():
        results.add_times(case.shape, case.size, system, spent)
    for ours in (HTTP, SERVICE):
        for by_hand, metric in ((SQL, f"{ours}_over_sql_p50"), (BUDGETED, f"{ours}_over_budgeted_sql_p50")):  # fmt: skip
            if by_hand in times:
                ratio = times[ours].median / times[by_hand].median
                results.add(case.shape, case.size, ours, metric, ratio, "ratio")
    for step, ms in steps.items():
        results.add(case.shape, case.size, SERVICE, f"step_{step}_p50", median(ms), "ms")


def check_answers(bench: Bench, case: Case) -> None:
    """Whether the vector leg finds the nearest ten, whether `limit` is filled when enough matches exist,
    and how alike the product's ten and those found by hand are."""
    recalls, fillings, alike = [], [], []
    with connected() as link:
        for number in range(len(case.questions)):
            base, question = case.of(number)
            hand = ByHand.as_usual(link, base, bench.embedder, case.language)
            wide = _WIDE if number < _WIDE_QUESTIONS else 10
            vector = bench.embedder.embed_queries([question.text])[0]
            nearest = hand.exactly_nearest(question, vector, 10)
            request = request_for(question, base.base.slug)
            semantic = search(base.actor, replace(request, strategy=Strategy.SEMANTIC))
            recalls.append(recall([hit.chunk.id for hit in semantic.hits], nearest))
            hybrid = search(base.actor, replace(request, limit=wide)).hits
            matches = len(nearest if wide == 10 else hand.exactly_nearest(question, vector, wide))
            fillings.append(float(len(hybrid) == min(wide, matches)))
            ours = [hit.chunk.id for hit in hybrid]
            alike.append(overlap([row[0] for row in hand.search(question)], ours, 10))
    results = bench.results
    results.add(case.shape, case.size, SERVICE, "recall@10", mean(recalls), "share")
    results.add(case.shape, case.size, SERVICE, "limit_filled", mean(fillings), "share")
    results.add(case.shape, case.size, SERVICE, "sql_overlap@10", mean(alike), "share")
