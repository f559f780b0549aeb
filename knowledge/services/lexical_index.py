"""The lexical columns of chunks: tsvector, BM25 weights, length, language."""

from __future__ import annotations

from collections.abc import Iterable

from pgvector import SparseVector

from knowledge.lexical.analyzer import analyze
from knowledge.lexical.fingerprint import fingerprint
from knowledge.lexical.language import detect_language
from knowledge.lexical.weights import DIMENSIONS, document_weights, length_of, tsvector_literal
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.statistics import corpus_statistics

_BATCH = 500
_TOLERATED_DRIFT = 1.25  # BM25 changes by under 5 % while the average length is within this factor


def context_of(title: str, heading_path: Iterable[str]) -> str:
    """The line that says where a passage stands; indexed and embedded with it."""
    return " › ".join(part for part in (title, *heading_path) if part)


def text_in_context(title: str, heading_path: Iterable[str], content: str) -> str:
    """What is indexed and embedded of a passage: the same text for words and vectors."""
    return f"{context_of(title, heading_path)}\n{content}"


def fill_lexical_columns(
    chunk: Chunk, *, title: str, fallback_language: str, base: KnowledgeBase
) -> None:
    """Set the lexical columns of a chunk from its content and context; nothing is saved."""
    chunk.language = (
        base.language
        if base.language != KnowledgeBase.Language.AUTO
        else detect_language(chunk.content, fallback_language) or fallback_language
    )
    tokens = analyze(text_in_context(title, chunk.heading_path, chunk.content), chunk.language)
    chunk.lexemes = tsvector_literal(tokens)
    chunk.lexical_length = length_of(tokens)
    chunk.fingerprint = fingerprint(tokens)
    weights = document_weights(tokens, base.average_length)
    chunk.lexical_weights = SparseVector(weights, DIMENSIONS)


def reweigh_base(base: KnowledgeBase) -> int:
    """Bring stored BM25 weights to the base's true average length when it has drifted; returns the
    number of chunks rewritten. Runs in the tenant's scope; ranks are consistent at every moment to
    within the drift."""
    average = corpus_statistics([base.id]).average_length
    drift = average / base.average_length if average else 1.0
    if 1 / _TOLERATED_DRIFT <= drift <= _TOLERATED_DRIFT:
        return 0
    base.average_length = average
    KnowledgeBase.objects.filter(id=base.id).update(average_length=average)
    titles = dict(Document.objects.filter(knowledge_base=base).values_list("id", "title"))
    rewritten, batch = 0, []
    chunks = Chunk.objects.filter(knowledge_base=base).defer(
        "embedding", "lexical_weights", "lexemes"
    )
    for chunk in chunks.order_by("id").iterator(chunk_size=_BATCH):
        tokens = analyze(
            text_in_context(titles.get(chunk.document_id, ""), chunk.heading_path, chunk.content),
            chunk.language,
        )
        chunk.lexical_weights = SparseVector(document_weights(tokens, average), DIMENSIONS)
        batch.append(chunk)
        if len(batch) == _BATCH:
            rewritten += Chunk.objects.bulk_update(batch, ["lexical_weights"])
            batch = []
    return rewritten + Chunk.objects.bulk_update(batch, ["lexical_weights"])
