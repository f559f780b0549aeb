"""Filters that half, one in a hundred, or one in ten thousand documents pass; by value and by time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from benchmarks.progress import say
from benchmarks.speed.bench import Bench, request_for
from benchmarks.speed.by_hand import ByHand, connected
from benchmarks.speed.comparison import EMBEDDER, SERVICE, SQL, Case, check_answers
from benchmarks.speed.filling import Filled
from benchmarks.speed.loading import EPOCH, document_facts
from benchmarks.speed.material import Question
from benchmarks.speed.measurement import alternate
from search.services.search import search

SHARES = {"half": 0.5, "percent": 0.01, "rare": 0.0001}
LABELS = {"half": "50 %", "percent": "1 %", "rare": "0.01 %"}


def measure(bench: Bench) -> None:
    """Each filter on the same base."""
    base = bench.base(bench.options.filtered)
    for name, label in LABELS.items():
        say(f"Filters that {label} pass …")
        for kind, narrow in (("value", by_value), ("time", by_time)):
            questions = narrow(bench.questions(), name, base)
            measure_narrowed(bench, Case(f"filter by {kind}, {label}", base.chunks, "en", [base], questions))  # fmt: skip


def measure_narrowed(bench: Bench, case: Case) -> None:
    """The service beside hand-written SQL with the same condition, and whether the answers are right."""
    base = case.bases[0]
    with connected() as link:
        hand = ByHand.as_usual(link, base, bench.embedder, case.language)
        times = alternate(
            {
                SERVICE: lambda n: search(base.actor, request_for(case.of(n)[1], base.base.slug)),
                SQL: lambda n: hand.search(case.of(n)[1]),
                EMBEDDER: lambda n: bench.embedder.embed_queries([case.of(n)[1].text]),
            },
            len(case.questions),
            max(1, bench.options.rounds // 2),
        )
    for system, spent in times.items():
        bench.results.add_times(case.shape, case.size, system, spent)
    ratio = times[SERVICE].median / times[SQL].median
    bench.results.add(case.shape, case.size, SERVICE, "service_over_sql_p50", ratio, "ratio")
    check_answers(bench, case)


def by_value(questions: Sequence[Question], name: str, base: Filled) -> list[Question]:
    """`metadata.<name>` equal to a value that some public document has, another one for each question."""
    values = [facts.metadata[name] for facts in document_facts(base.chunks) if "public" in facts.principals]  # fmt: skip
    chosen = [values[n * 37 % len(values)] for n in range(len(questions))]
    return [
        replace(
            question,
            filter={"field": f"metadata.{name}", "op": "eq", "value": value},
            sql="d.metadata @> %s::jsonb",
            parameters=(json.dumps({name: value}),),
        )
        for question, value in zip(questions, chosen, strict=True)
    ]


def by_time(questions: Sequence[Question], name: str, base: Filled) -> list[Question]:
    """`updated_at` within a span that the share of the documents lies in, another one for each question."""
    documents = base.documents
    width = max(1, math.ceil(SHARES[name] * documents))
    narrowed = []
    for number, question in enumerate(questions):
        first = EPOCH + timedelta(minutes=number * 37 % max(1, documents - width))
        stop = first + timedelta(minutes=width)
        bounds = [("gte", first), ("lt", stop)]
        tree = {"and": [{"field": "updated_at", "op": op, "value": at.isoformat()} for op, at in bounds]}  # fmt: skip
        sql = "d.source_updated_at >= %s AND d.source_updated_at < %s"
        narrowed.append(replace(question, filter=tree, sql=sql, parameters=(first, stop)))
    return narrowed
