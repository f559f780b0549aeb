"""Speed: `make bench`. The search service against the same work in hand-written SQL, in one run.

Reports medians in milliseconds and their ratio; only the ratio is worth comparing between machines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from django.db import connection

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from benchmarks.ground import fill_base, ground, write_rows
from knowledge.models import KnowledgeBase
from providers.registry import embedder_for
from search.request import SearchRequest
from search.services.search import search

DOCUMENTS = 400
REPEATS = 60
TOPICS = (
    "invoice retention",
    "paper jam PPR-9087",
    "差旅费报销期限",
    "annual leave",
    "VPN client setup",
)
VECTOR_SQL = """
SELECT c.id, c.content, 1 - (c.embedding <=> %s::halfvec) AS score FROM knowledge_chunk c
WHERE c.tenant_id = %s AND c.knowledge_base_id = %s AND c.live AND c.enabled ORDER BY score DESC LIMIT 10
"""


def main() -> None:
    """Fill a base, ask the same questions both ways, print the table."""
    with ground() as actor:
        texts = [(f"d{n}", f"Note {n}", f"{TOPICS[n % len(TOPICS)]}: remark number {n} of {DOCUMENTS}.") for n in range(DOCUMENTS)]  # fmt: skip
        started = time.perf_counter()
        base = fill_base(actor, "speed", texts)
        filled_s = time.perf_counter() - started
        ours = _median_ms(
            lambda query: search(actor, SearchRequest(query, knowledge_bases=[base.slug]))
        )
        plain = _median_ms(lambda query: _by_hand(actor, base, query))
    rows: list[dict[str, object]] = [
        {"shape": "one base", "size": DOCUMENTS, "system": system, "metric": metric, "value": round(value, 3), "unit": unit}
        for system, metric, value, unit in (
            ("groundwork", "search_p50", ours, "ms"),
            ("hand-written SQL, vector only", "search_p50", plain, "ms"),
            ("groundwork", "service_over_sql_p50", ours / plain, "ratio"),
            ("groundwork", "ingest", DOCUMENTS / filled_s, "documents/s"),
        )
    ]  # fmt: skip
    for row in rows:
        print(f"{row['system']:30} {row['metric']:22} {row['value']:>9} {row['unit']}")
    write_rows("bench.json", rows)


def _by_hand(actor: Actor, base: KnowledgeBase, query: str) -> None:
    vector = embedder_for(base.embedding_model).embed_queries([query])[0].tolist()
    with tenant_scope(actor.tenant_id), connection.cursor() as cursor:
        cursor.execute(VECTOR_SQL, [str(vector), actor.tenant_id, base.id])
        cursor.fetchall()


def _median_ms(call: Callable[[str], object]) -> float:
    call(TOPICS[0])
    spent = []
    for number in range(REPEATS):
        started = time.perf_counter()
        call(TOPICS[number % len(TOPICS)])
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
