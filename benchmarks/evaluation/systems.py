"""Rankings of the product under each strategy, and of exact cosine over its passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from benchmarks.evaluation.metrics import DEPTH
from benchmarks.progress import Progress
from knowledge.models import Chunk, KnowledgeBase
from knowledge.services.lexical_index import text_in_context
from providers.base import Embedder, Vectors
from search.request import MAX_QUERY_CHARS, SearchRequest, Strategy
from search.services.search import search

BM25, COSINE, RERANK = "bm25s", "cosine", "hybrid+rerank"
STRATEGIES = {
    "lexical": Strategy.LEXICAL,
    "semantic": Strategy.SEMANTIC,
    "hybrid": Strategy.HYBRID,
    RERANK: Strategy.HYBRID,
}
SYSTEMS = (BM25, COSINE, *STRATEGIES)
_DEADLINE_MS = 60_000  # quality must not depend on how busy the machine is
_BATCH = 256

Rankings = dict[str, list[str]]


class UnavailableError(RuntimeError):
    """An operation that was asked for did not take part; the message says why."""


@dataclass(frozen=True, slots=True)
class Searcher:
    """The product's search over one base."""

    actor: Actor
    base: KnowledgeBase

    def rankings(self, system: str, questions: Mapping[str, str]) -> Rankings:
        """Question → documents, best first. Raises `UnavailableError` when a search was degraded."""
        progress = Progress(f"{self.base.name}: {system} questions", len(questions))
        ranked = {}
        for key, text in questions.items():
            ranked[key] = self._ranking(system, text)
            progress.advance()
        return ranked

    def _ranking(self, system: str, text: str) -> list[str]:
        request = SearchRequest(
            text[:MAX_QUERY_CHARS],
            knowledge_bases=[self.base.slug],
            strategy=STRATEGIES[system],
            limit=DEPTH,
            group_by_document=True,
            rerank=system == RERANK,
            deadline_ms=_DEADLINE_MS,
        )
        outcome = search(self.actor, request)
        if outcome.degraded:
            raise UnavailableError("; ".join(f"{name}: {why}" for name, why in outcome.degraded))
        if request.rerank and outcome.hits and "rerank" not in outcome.timings_ms:
            raise UnavailableError("rerank: Not available in this installation.")
        return [hit.chunk.document.external_id for hit in outcome.hits]


def cosine_rankings(
    actor: Actor, base: KnowledgeBase, embedder: Embedder, questions: Mapping[str, str]
) -> Rankings:
    """Documents by their best passage's cosine to the question, over every passage."""
    owners, texts = _passages(actor, base)
    matrix = _embedded(embedder.embed_passages, texts)
    asked = _embedded(
        embedder.embed_queries, [text[:MAX_QUERY_CHARS] for text in questions.values()]
    )
    return {
        key: _best_documents(owners, matrix @ vector)
        for key, vector in zip(questions, asked, strict=True)
    }


def _passages(actor: Actor, base: KnowledgeBase) -> tuple[list[str], list[str]]:
    """The document of each passage, and its text as it is embedded."""
    with tenant_scope(actor.tenant_id):
        chunks = Chunk.objects.filter(knowledge_base=base).order_by("id")
        rows = list(
            chunks.values_list(
                "document__external_id", "document__title", "heading_path", "content"
            )
        )
    texts = [text_in_context(title, path, content) for _, title, path, content in rows]
    return [row[0] for row in rows], texts


def _embedded(embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
    parts = [embed(texts[first : first + _BATCH]) for first in range(0, len(texts), _BATCH)]
    return np.concatenate(parts)


def _best_documents(owners: Sequence[str], scores: Vectors) -> list[str]:
    best: defaultdict[str, float] = defaultdict(lambda: -1.0)
    for owner, score in zip(owners, scores.tolist(), strict=True):
        best[owner] = max(best[owner], score)
    return sorted(best, key=lambda document_id: (-best[document_id], document_id))[:DEPTH]
