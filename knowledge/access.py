"""The only door from an id to a base, document or chunk. Absent and forbidden read the same."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from accounts.access import Action, Actor, as_uuid, row_by_id
from config.errors import NotFoundError
from knowledge.models import Chunk, Document, KnowledgeBase


def visible_knowledge_bases(actor: Actor) -> QuerySet[KnowledgeBase]:
    """The bases this actor may use at all."""
    bases: QuerySet[KnowledgeBase] = KnowledgeBase.objects.all()
    if actor.knowledge_base_ids is not None:
        bases = bases.filter(id__in=actor.knowledge_base_ids)
    return bases


def visible_documents(actor: Actor) -> QuerySet[Document]:
    """The documents this actor may read; versions still in the making are not among them."""
    documents: QuerySet[Document] = Document.objects.filter(replaces=None).defer("extracted_text")
    if actor.knowledge_base_ids is not None:
        documents = documents.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    if not actor.sees_every_document:
        documents = documents.filter(principals__overlap=sorted(actor.principals))
    return documents


def visible_chunks(actor: Actor) -> QuerySet[Chunk]:
    """The chunks of those documents."""
    chunks: QuerySet[Chunk] = Chunk.objects.filter(live=True).defer(
        "lexemes", "lexical_weights", "embedding", "embedding_alternate"
    )
    if actor.knowledge_base_ids is not None:
        chunks = chunks.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    if not actor.sees_every_document:
        chunks = chunks.filter(principals__overlap=sorted(actor.principals))
    return chunks


def access_knowledge_base(actor: Actor, reference: str | UUID, action: Action) -> KnowledgeBase:
    """A base by id or slug."""
    actor.require(action)
    bases, identity = visible_knowledge_bases(actor), as_uuid(reference)
    named = bases.filter(id=identity) if identity else bases.filter(slug=str(reference))
    base = named.first()
    if base is None:
        raise NotFoundError
    return base


def access_document(actor: Actor, reference: str | UUID, action: Action) -> Document:
    """A document by id."""
    actor.require(action)
    return row_by_id(visible_documents(actor), reference)


def access_chunk(actor: Actor, reference: str | UUID, action: Action) -> Chunk:
    """A chunk by id."""
    actor.require(action)
    return row_by_id(visible_chunks(actor), reference)
