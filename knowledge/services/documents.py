"""Adding, changing and deleting documents. Indexing itself is in `ingest.py`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from mimetypes import guess_type
from typing import Any, BinaryIO, cast
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from accounts.tenancy import new_id
from config.errors import FieldError, InvalidInputError
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.models.document import public_only
from knowledge.services.boosts import BOOST_RULE, is_boost
from knowledge.services.originals import forget_originals, original_name
from knowledge.services.statistics import count_document

_PIECE = 1024 * 1024
# What may be given as text, and the ending by which it is read.
TEXT_SUFFIXES = {
    "text/plain": ".txt", "text/markdown": ".md", "text/html": ".html", "application/json": ".json",
    "text/csv": ".csv", "application/xml": ".xml", "text/xml": ".xml", "application/yaml": ".yaml",
    "application/x-ndjson": ".jsonl", "message/rfc822": ".eml",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What the caller knows of a document besides its bytes. A repeated `external_id` is a new version."""

    filename: str
    title: str = ""
    content_type: str = ""  # by the file name when empty
    source: str = "upload"
    source_uri: str = ""
    source_id: UUID | None = None  # the connection, within which the external id is unique
    external_id: str = ""
    author: str = ""
    breadcrumbs: Sequence[str] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    principals: Sequence[str] = field(default_factory=public_only)
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Outcome(StrEnum):
    """What adding did."""

    CREATED = "created"
    REPLACING = "replacing"  # a new version is on its way
    UPDATED = "updated"  # same content, other facts
    UNCHANGED = "unchanged"
    RETRIED = "retried"  # same content, had failed before


@dataclass(frozen=True, slots=True)
class Added:
    """The document a call ended in, and how."""

    document: Document
    outcome: Outcome


def add_document(*, actor: Actor, base: KnowledgeBase, stream: BinaryIO, new: NewDocument) -> Added:
    """Store the bytes and queue the document for indexing. Content that is there already does no work."""
    actor.require(Action.WRITE)
    added = store_document(base=base, stream=stream, new=new)
    if added.outcome in {Outcome.CREATED, Outcome.REPLACING}:
        document = added.document
        record_event(actor, "document.added", target=str(document), target_id=document.id)
    return added


def store_document(*, base: KnowledgeBase, stream: BinaryIO, new: NewDocument) -> Added:
    """The same for callers who have no person behind them and account for what they do themselves."""
    _validate(new)
    content_hash, size = _measure(stream, new.filename)
    known = _find_known(base, new, content_hash)
    if known is not None and known.content_hash == content_hash:
        return _same_content(known, new)
    if known is not None and _is_on_its_way(known, new, content_hash):
        return Added(known, Outcome.REPLACING)
    try:
        with transaction.atomic():
            document = _store(base, stream, new, content_hash, size, replaces=known)
    except IntegrityError:  # another upload of the same content was faster
        known = _find_known(base, new, content_hash)
        if known is None:
            raise
        return Added(known, Outcome.UNCHANGED)
    schedule_processing(document)
    if known is not None:
        return Added(known, Outcome.REPLACING)
    return Added(document, Outcome.CREATED)


def update_document(*, actor: Actor, document: Document, **fields: Any) -> Document:
    """Change title, metadata, principals, boost or source facts. Nothing is embedded again."""
    actor.require(Action.WRITE)
    for name, value in fields.items():
        setattr(document, name, value)
    validate_principals(document.principals)
    if not is_boost(document.boost):
        raise InvalidInputError("The boost cannot be saved.", [FieldError("boost", BOOST_RULE)])
    document.save(update_fields=[*fields, "updated_at"])
    if "principals" in fields:
        Chunk.objects.filter(document_id=document.id).update(principals=document.principals)
    record_event(
        actor, "document.changed", target=str(document), target_id=document.id,
        detail={"fields": sorted(fields)},
    )  # fmt: skip
    return document


def delete_documents(*, actor: Actor, documents: Sequence[Document]) -> None:
    """Remove every trace of some documents at once."""
    actor.require(Action.WRITE)
    remove_documents([document.id for document in documents])
    for document in documents:
        record_event(actor, "document.deleted", target=str(document), target_id=document.id)


def remove_documents(ids: Sequence[UUID]) -> None:
    """The same for callers who account for what they do themselves."""
    rows = Document.objects.filter(id__in=ids) | Document.objects.filter(replaces_id__in=ids)
    names = list(rows.exclude(original="").values_list("original", flat=True))
    for document in Document.objects.filter(id__in=ids).order_by("id").select_for_update():
        count_document(document.id, sign=-1)
    Document.objects.filter(id__in=ids).delete()
    forget_originals(names)


def move_documents(*, actor: Actor, documents: Sequence[Document], base: KnowledgeBase) -> int:
    """Move documents into another base, where they are indexed anew with that base's settings.
    Returns how many moved; content that the other base has already stays where it is."""
    actor.require(Action.WRITE)
    moved = 0
    for document in documents:
        if document.knowledge_base_id == base.id or _find_known(
            base,
            NewDocument(
                document.filename, source_id=document.source_id, external_id=document.external_id
            ),
            document.content_hash,
        ):
            continue
        count_document(document.id, sign=-1)
        Chunk.objects.filter(document_id=document.id).delete()
        Document.objects.filter(replaces_id=document.id).delete()
        document.knowledge_base = base
        document.indexed_at = None
        document.chunk_count = 0
        document.save(update_fields=["knowledge_base", "indexed_at", "chunk_count", "updated_at"])
        record_event(
            actor,
            "document.moved",
            target=str(document),
            target_id=document.id,
            detail={"to": base.slug},
        )
        requeue(document)
        moved += 1
    return moved


def reprocess_documents(*, actor: Actor, documents: Sequence[Document]) -> None:
    """Read, cut and embed again; until that is done, search sees what it saw before."""
    actor.require(Action.WRITE)
    for document in documents:
        requeue(document)
        record_event(actor, "document.reprocessed", target=str(document), target_id=document.id)


def requeue(document: Document) -> None:
    """Put a document back to the start of the queue."""
    document.status, document.stage = Document.Status.PENDING, Document.Stage.QUEUED
    document.error = document.error_code = ""
    document.attempts = 0
    document.heartbeat_at = None
    document.save(
        update_fields=[
            "status",
            "stage",
            "error",
            "error_code",
            "attempts",
            "heartbeat_at",
            "updated_at",
        ]
    )
    schedule_processing(document)


def schedule_processing(document: Document) -> None:
    """Hand a document to the workers once the present transaction is committed."""
    from knowledge.tasks import process_document_task  # noqa: PLC0415 - tasks call services

    tenant_id, document_id = str(document.tenant_id), str(document.id)
    transaction.on_commit(lambda: process_document_task.delay(tenant_id, document_id))


def text_filename(name: str, content_type: str) -> str:
    """The file name of a text that has none. Raises `InvalidInputError` for a type that is no text."""
    kind = content_type.split(";", maxsplit=1)[0].strip().lower()
    if kind not in TEXT_SUFFIXES:
        raise InvalidInputError(
            f"Documents of type {kind} cannot be given as text; upload the file.",
            [FieldError("content_type", f"One of {', '.join(sorted(TEXT_SUFFIXES))}.")],
        )
    return name[:200] + TEXT_SUFFIXES[kind]


def read_original(document: Document) -> BinaryIO:
    """The stored bytes, to be closed by the caller."""
    if not document.original.name:
        raise FileNotFoundError("The document has no stored original.")
    return cast(BinaryIO, default_storage.open(document.original.name, "rb"))


def _store(
    base: KnowledgeBase,
    stream: BinaryIO,
    new: NewDocument,
    content_hash: str,
    size: int,
    replaces: Document | None,
) -> Document:
    if replaces is not None:
        _drop_unfinished_version(replaces)
    document_id = new_id()
    document = Document(
        id=document_id,
        knowledge_base=base,
        replaces=replaces,
        title=new.title[:500],
        filename=new.filename[:500],
        content_type=new.content_type or guess_type(new.filename)[0] or "",
        source=new.source,
        source_uri=new.source_uri,
        source_id=new.source_id,
        external_id=new.external_id,
        author=new.author[:300],
        breadcrumbs=[crumb[:300] for crumb in new.breadcrumbs],
        metadata=new.metadata,
        principals=list(new.principals),
        source_created_at=new.created_at,
        source_updated_at=new.updated_at,
        size=size,
        content_hash=content_hash,
    )
    document.original.name = original_name(base.tenant_id, base.id, document_id, content_hash)
    document.save(force_insert=True)
    # After the row, so that a constraint refuses a twin before its bytes are written.
    default_storage.save(document.original.name, File(stream))
    return document


def _drop_unfinished_version(document: Document) -> None:
    unfinished = Document.objects.filter(replaces_id=document.id)
    forget_originals(list(unfinished.values_list("original", flat=True)))
    unfinished.delete()


def _is_on_its_way(document: Document, new: NewDocument, content_hash: str) -> bool:
    """Whether this very content is being indexed as the document's next version, with the same facts."""
    return document.replacements.filter(
        content_hash=content_hash,
        title=new.title[:500],
        metadata=new.metadata,
        principals=list(new.principals),
        status__in=[Document.Status.PENDING, Document.Status.PROCESSING],
    ).exists()


def _find_known(base: KnowledgeBase, new: NewDocument, content_hash: str) -> Document | None:
    documents = Document.objects.filter(knowledge_base=base, replaces=None).defer("extracted_text")
    found: Document | None
    if new.external_id:
        found = documents.filter(source_id=new.source_id, external_id=new.external_id).first()
    else:
        found = documents.filter(content_hash=content_hash).order_by("created_at").first()
    return found


def _same_content(document: Document, new: NewDocument) -> Added:
    _drop_unfinished_version(document)
    facts = {
        "title": new.title or document.title,
        "metadata": new.metadata or document.metadata,
        "principals": list(new.principals),
        "source_uri": new.source_uri or document.source_uri,
        "source_created_at": new.created_at or document.source_created_at,
        "source_updated_at": new.updated_at or document.source_updated_at,
    }
    changed = {name: value for name, value in facts.items() if getattr(document, name) != value}
    if new.external_id and changed:
        for name, value in changed.items():
            setattr(document, name, value)
        document.save(update_fields=[*changed, "updated_at"])
        if "principals" in changed:
            Chunk.objects.filter(document_id=document.id).update(principals=document.principals)
        return Added(document, Outcome.UPDATED)
    if document.status == Document.Status.FAILED:
        requeue(document)
        return Added(document, Outcome.RETRIED)
    return Added(document, Outcome.UNCHANGED)


def _measure(stream: BinaryIO, filename: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(stream):
        size += len(piece)
        if size > settings.MAX_UPLOAD_BYTES:
            limit = settings.MAX_UPLOAD_BYTES // 1024 // 1024
            raise InvalidInputError(
                f"{filename} is larger than {limit} MB. Split it, or raise MAX_UPLOAD_MB.",
                [FieldError("file", f"Larger than {limit} MB.")],
            )
        digest.update(piece)
    stream.seek(0)
    if not size:
        raise InvalidInputError(
            f"{filename} is empty (0 bytes). Check the file and upload it again.",
            [FieldError("file", "Empty.")],
        )
    return digest.hexdigest(), size


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(0)
    while piece := stream.read(_PIECE):
        yield piece


def _validate(new: NewDocument) -> None:
    validate_principals(new.principals)
    if not new.filename.strip():
        raise InvalidInputError(
            "The file has no name.", [FieldError("filename", "Must not be empty.")]
        )


def validate_principals(principals: Sequence[str]) -> None:
    """Raise `InvalidInputError` when one is no principal."""
    for principal in principals:
        kind, _, name = principal.partition(":")
        if principal != "public" and (kind not in {"user", "group"} or not name):
            raise InvalidInputError(
                f"“{principal}” is not a principal.",
                [FieldError("principals", "Write public, user:mail@example.com or group:name.")],
            )
