"""The first questions after a start of the database, with nothing in its memory, beside the same later."""

from __future__ import annotations

from django.conf import settings

from benchmarks.progress import say
from benchmarks.speed.bench import Bench, request_for
from benchmarks.speed.comparison import SERVICE
from benchmarks.speed.measurement import Times, timed
from benchmarks.speed.processes import forget_everything
from search.services.search import search

SHAPE = "cold"
STARTS = 3
QUESTIONS = 20


def measure(bench: Bench) -> None:
    """Three starts; each question is new to the database."""
    if not settings.EMBEDDED_DATABASE:
        bench.results.remark("Cold starts were not measured: the database is not the embedded one.")
        return
    base = bench.base(bench.options.filtered)
    bench.stop_server()
    say("Cold starts …")
    questions = bench.questions()[:QUESTIONS]
    requests = [request_for(question, base.base.slug) for question in questions]
    bench.embedder.embed_queries(["warm-up"])
    first, cold, hot = [], [], []
    for _ in range(STARTS):
        if not forget_everything():
            bench.results.remark(
                "The system's cache of files could not be dropped, which takes root: cold means that the database has just "
                "been started."
            )  # fmt: skip
        spent = [timed(search, base.actor, request)[0] for request in requests]
        first.append(spent[0])
        cold += spent[1:]
        hot += [timed(search, base.actor, request)[0] for request in requests]
    for system, ms in (("first question", first), ("next questions", cold), ("hot", hot)):
        bench.results.add_times(SHAPE, base.chunks, system, Times(ms))
    ratio = Times(cold).median / Times(hot).median
    bench.results.add(SHAPE, base.chunks, SERVICE, "cold_over_hot_p50", ratio, "ratio")
