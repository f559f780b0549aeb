"""The operation `rerank`: read the best passages together with the question and order them anew."""

from __future__ import annotations

from config.errors import RemoteError
from knowledge.services.lexical_index import text_in_context
from providers.registry import reranker
from search.outcome import Hit, SearchOutcome
from search.reranking import DEPTH, mix


def rerank_hits(outcome: SearchOutcome, deadline: float) -> None:
    """Reorder the first `DEPTH` hits. What is not read by `deadline`, a moment of `time.perf_counter`,
    stays behind what is, and the outcome says so. Hold no transaction: it takes a while."""
    head, tail = outcome.hits[:DEPTH], outcome.hits[DEPTH:]
    if not head:
        return
    try:
        with outcome.timed("rerank"):
            scores = reranker().rerank(
                outcome.request.query, [_text(hit) for hit in head], deadline=deadline
            )
    except RemoteError as error:
        outcome.degraded.append(("rerank", error.message))
        return
    read = sum(score is not None for score in scores)
    if read < len(head):
        reason = f"Ran out of time (deadline_ms): {read} of {len(head)} passages were read."
        outcome.degraded.append(("rerank", reason))
    if read:
        outcome.hits = _reordered(head, scores, tail) + tail


def _text(hit: Hit) -> str:
    chunk = hit.chunk
    return text_in_context(chunk.document.title, chunk.heading_path, chunk.content)


def _reordered(head: list[Hit], scores: list[float | None], tail: list[Hit]) -> list[Hit]:
    mixed = mix([hit.fused.score for hit in head], scores)
    read = [(score, hit) for score, hit in zip(scores, head, strict=True) if score is not None]
    for rank, (score, hit) in enumerate(sorted(read, key=lambda one: -one[0]), start=1):
        hit.rerank = (rank, score)
    # Above what was not read with it, so that scores fall from the first result to the last.
    floor = tail[0].fused.score if tail else 0.0
    order = sorted(range(len(head)), key=lambda place: -mixed[place])
    for place in order:
        head[place].fused.score = floor + (1 - floor) * mixed[place]
    return [head[place] for place in order]
