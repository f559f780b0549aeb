"""Correcting chunks by hand."""

from __future__ import annotations

from django.utils import timezone

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from config.errors import FieldError, InvalidInputError, NotFoundError
from knowledge.models import Chunk, KnowledgeBase
from knowledge.services.lexical_index import fill_lexical_columns, text_in_context
from knowledge.services.statistics import count_chunks
from knowledge.services.vector_space import VectorSpace, find_space, hold_space
from providers.registry import embedder_for


def edit_chunk(
    *, actor: Actor, chunk: Chunk, content: str | None = None, enabled: bool | None = None
) -> Chunk:
    """Change the text of a chunk or switch it on or off; search sees it at once."""
    actor.require(Action.WRITE)
    fields = ["enabled"]
    count_chunks([chunk.id], sign=-1)
    if content is not None and content != chunk.content:
        _rewrite(chunk, content)
        fields += ["content", "token_count", "edited_at", "language", "lexemes"]
        fields += [
            "lexical_length",
            "lexical_weights",
            "fingerprint",
            *KnowledgeBase.EmbeddingField.values,
        ]
    if enabled is not None:
        chunk.enabled = enabled
    chunk.save(update_fields=fields)
    count_chunks([chunk.id], sign=1)
    record_event(
        actor, "chunk.edited", target=f"{chunk.document} #{chunk.ordinal + 1}", target_id=chunk.id,
        detail={"content": content is not None, "enabled": chunk.enabled},
    )  # fmt: skip
    return chunk


def _rewrite(chunk: Chunk, content: str) -> None:
    base, title = chunk.knowledge_base, chunk.document.title
    embedder = embedder_for(_space(base).model)
    text = text_in_context(title, chunk.heading_path, content)
    tokens = embedder.count_tokens([text])[0]
    if not content.strip():
        raise InvalidInputError(
            "A chunk cannot be empty. Switch it off instead.",
            [FieldError("content", "Must not be empty.")],
        )
    if tokens > embedder.max_tokens:
        raise InvalidInputError(
            f"The text has {tokens} tokens; the embedding model reads {embedder.max_tokens}.",
            [FieldError("content", "Too long for the embedding model.")],
        )
    chunk.content = content.replace("\x00", "")
    chunk.token_count = tokens
    chunk.edited_at = timezone.now()
    fill_lexical_columns(chunk, title=title, fallback_language=chunk.language, base=base)
    _embed(chunk, text)


def _embed(chunk: Chunk, text: str) -> None:
    """Set the vector that search reads; the one of any other model is no longer true."""
    space = _space(chunk.knowledge_base)
    vector = embedder_for(space.model).embed_passages([text])[0].tolist()
    held = hold_space(space.base_id)
    if held != space:
        if held is None:
            raise NotFoundError
        # The base has changed its model just now. Being held, it will not do so again.
        space, vector = held, embedder_for(held.model).embed_passages([text])[0].tolist()
    setattr(chunk, space.field, vector)
    setattr(chunk, space.spare_field, None)


def _space(base: KnowledgeBase) -> VectorSpace:
    space = find_space(base.id)
    if space is None:
        raise NotFoundError
    return space
