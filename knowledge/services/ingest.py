"""From stored bytes to searchable chunks.

1. `process_document` claims a document, reads it in the sandbox, cuts it and writes its chunks with
   their lexical columns. A first version is found by its words from here on.
2. `embed_slice` computes the vectors of a range of chunks; slices run in parallel on all workers.
3. `finish_document` puts a fully embedded version in the place of the old one, in one transaction.

Every step may die anywhere and be repeated: claims are conditional updates, slices skip what is
embedded, and the last step happens once under a row lock.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.tenancy import tenant_scope
from config.errors import AppError
from knowledge.extraction.base import Extracted, ExtractionError, Limits
from knowledge.extraction.sandbox import extract_file
from knowledge.lexical.language import detect_language
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.announcements import announce_failure
from knowledge.services.chunking import ChunkDraft, chunk_text
from knowledge.services.documents import read_original
from knowledge.services.lexical_index import (
    context_of,
    fill_lexical_columns,
    text_in_context,
)
from knowledge.services.publish import publish_version
from knowledge.services.statistics import count_document
from knowledge.services.vector_space import (
    VectorSpace,
    find_space,
    hold_space,
    write_vectors,
)
from providers.registry import embedder_for

logger = logging.getLogger(__name__)

SLICE = 128  # chunks a task embeds: some seconds of work, so that workers share a long document
_BATCH = 32
_INSERT_BATCH = 500
_STALE_AFTER = timedelta(seconds=90)
_STALE_READING_AFTER = timedelta(seconds=Limits().timeout_s + 60)
_LANGUAGE_SAMPLE = 4000  # characters


def process_document(tenant_id: UUID, document_id: UUID) -> None:
    """Read, cut and index one document by its words, then queue its vectors."""
    claimed = _claim(tenant_id, document_id)
    if claimed is None:
        return
    document, base = claimed
    try:
        extracted = _extract(document)
        context = context_of(document.title or extracted.title, ())
        drafts = chunk_text(
            extracted, base.chunking_options(), embedder_for(base.embedding_model), context
        )
        _write_chunks(document, base, extracted, drafts)
    except (AppError, FileNotFoundError) as error:
        _fail(document, error)
    except IntegrityError:
        # The base or document was deleted meanwhile; its rows are gone by cascade.
        logger.info("Document %s was deleted while it was being read", document_id)


def embed_slice(tenant_id: UUID, document_id: UUID, first: int, stop: int) -> None:
    """Compute the missing vectors of chunks with `first <= ordinal < stop`. Raises `RemoteError`."""
    while found := _next_batch(tenant_id, document_id, first, stop):
        space, batch = found
        title = batch[0].document.title
        vectors = embedder_for(space.model).embed_passages(
            [text_in_context(title, chunk.heading_path, chunk.content) for chunk in batch]
        )
        _store_vectors(tenant_id, document_id, space, batch, vectors.tolist())
    finish_document(tenant_id, document_id)


def finish_document(tenant_id: UUID, document_id: UUID) -> None:
    """Make a document ready once no vector is missing. Safe to call at any time, from anywhere."""
    with tenant_scope(tenant_id):
        space = _hold_space(document_id)
        document = (
            Document.objects.select_for_update()
            .filter(
                id=document_id, status=Document.Status.PROCESSING, stage=Document.Stage.EMBEDDING
            )
            .defer("extracted_text")
            .first()
        )
        if document is None or space is None or _missing(document_id, space).exists():
            return
        publish_version(document)


def fail_document(tenant_id: UUID, document_id: UUID, error: AppError) -> None:
    """Record why a document could not be indexed. What was searchable before stays so."""
    with tenant_scope(tenant_id):
        Document.objects.filter(id=document_id).update(
            status=Document.Status.FAILED,
            stage=Document.Stage.DONE,
            error=error.message,
            error_code=error.code,
            updated_at=timezone.now(),
        )
        announce_failure(document_id)


def stalled_documents() -> list[tuple[UUID, UUID, str]]:
    """Tenant, document and stage of work that no process seems to be doing any more."""
    now = timezone.now()
    # Reading a file gives no sign of life before its own time limit.
    reading = Q(stage=Document.Stage.EXTRACTING, heartbeat_at__lt=now - _STALE_READING_AFTER)
    other = Q(heartbeat_at__lt=now - _STALE_AFTER) & ~Q(stage=Document.Stage.EXTRACTING)
    queued = Q(heartbeat_at=None, updated_at__lt=now - _STALE_AFTER)
    return _identify(_unfinished().filter(reading | other | queued))


def unfinished_documents() -> list[tuple[UUID, UUID, str]]:
    """The same of all unfinished work: for a start after which no older worker is alive."""
    return _identify(_unfinished())


def _unfinished() -> QuerySet[Document]:
    return Document.unscoped.filter(
        status__in=[Document.Status.PENDING, Document.Status.PROCESSING]
    )


def _identify(documents: QuerySet[Document]) -> list[tuple[UUID, UUID, str]]:
    return list(documents.order_by("id").values_list("tenant_id", "id", "stage"))


def release_stalled(tenant_id: UUID, document_id: UUID) -> None:
    """Let a document whose worker died be claimed again."""
    with tenant_scope(tenant_id):
        Document.objects.filter(id=document_id, status=Document.Status.PROCESSING).exclude(
            stage=Document.Stage.EMBEDDING
        ).update(status=Document.Status.PENDING, heartbeat_at=timezone.now())


def slices_of(tenant_id: UUID, document_id: UUID) -> list[tuple[int, int]]:
    """The ordinal ranges with missing vectors."""
    with tenant_scope(tenant_id):
        space = _find_space(document_id)
        if space is None:
            return []
        ordinals = _missing(document_id, space).values_list("ordinal", flat=True)
        starts = sorted({ordinal // SLICE * SLICE for ordinal in ordinals})
    return [(start, start + SLICE) for start in starts]


def _claim(tenant_id: UUID, document_id: UUID) -> tuple[Document, KnowledgeBase] | None:
    with tenant_scope(tenant_id):
        won = Document.objects.filter(id=document_id, status=Document.Status.PENDING).update(
            status=Document.Status.PROCESSING,
            stage=Document.Stage.EXTRACTING,
            attempts=F("attempts") + 1,
            heartbeat_at=timezone.now(),
        )
        if not won:
            return None
        document = (
            Document.objects.select_related("knowledge_base")
            .defer("extracted_text")
            .get(id=document_id)
        )
        return document, document.knowledge_base


def _extract(document: Document) -> Extracted:
    limits = Limits(max_bytes=settings.MAX_UPLOAD_BYTES)
    with tempfile.TemporaryDirectory(prefix="groundwork-") as folder:
        path = Path(folder) / "original"
        with read_original(document) as stream, path.open("wb") as copy:
            while piece := stream.read(1024 * 1024):
                copy.write(piece)
        return extract_file(path, document.filename, limits)


def _write_chunks(
    document: Document, base: KnowledgeBase, extracted: Extracted, drafts: Sequence[ChunkDraft]
) -> None:
    title = document.title or extracted.title or Path(document.filename).stem
    language = detect_language(extracted.text[:_LANGUAGE_SAMPLE])
    # Before the first indexing nothing else is found, so the words may be found at once.
    live = document.replaces_id is None and document.indexed_at is None
    rows = [
        _chunk(document, base, draft, title=title, language=language, live=live) for draft in drafts
    ]
    with tenant_scope(document.tenant_id):
        current = Document.objects.select_for_update().filter(id=document.id).only("id").first()
        if current is None:
            return
        if live:
            count_document(document.id, sign=-1)
            Chunk.objects.filter(document_id=document.id).delete()
        Chunk.objects.filter(document_id=document.id, live=False).delete()
        Chunk.objects.bulk_create(rows, batch_size=_INSERT_BATCH)
        if live:
            count_document(document.id, sign=1)
        Document.objects.filter(id=document.id).update(
            **_facts(document, extracted, title=title, language=language, chunk_count=len(rows))
        )
        transaction.on_commit(lambda: _schedule_slices(document.tenant_id, document.id))


def _chunk(
    document: Document,
    base: KnowledgeBase,
    draft: ChunkDraft,
    *,
    title: str,
    language: str,
    live: bool,
) -> Chunk:
    chunk = Chunk(
        tenant_id=document.tenant_id,
        knowledge_base_id=base.id,
        document_id=document.id,
        ordinal=draft.ordinal,
        content=draft.content,
        heading_path=list(draft.heading_path),
        page=draft.page,
        sheet=draft.sheet,
        row=draft.row,
        line=draft.line,
        start=draft.start,
        end=draft.end,
        token_count=draft.token_count,
        principals=document.principals,
        live=live,
    )
    fill_lexical_columns(chunk, title=title, fallback_language=language, base=base)
    return chunk


def _facts(
    document: Document, extracted: Extracted, *, title: str, language: str, chunk_count: int
) -> dict[str, Any]:
    found = dict(extracted.metadata)
    now = timezone.now()
    return {
        "title": title[:500],
        "language": language,
        "author": document.author or found.pop("author", "")[:300],
        "source_created_at": document.source_created_at or _moment(found.pop("created_at", "")),
        "source_updated_at": document.source_updated_at or _moment(found.pop("updated_at", "")),
        "metadata": {**found, **document.metadata},
        "extracted_text": extracted.text,
        "warnings": list(extracted.warnings),
        "coverage_unit": extracted.coverage.unit,
        "coverage_found": extracted.coverage.found,
        "coverage_indexed": extracted.coverage.indexed,
        "stage": Document.Stage.EMBEDDING,
        "chunk_count": chunk_count,
        "embedded_count": 0,
        "embedding_started_at": now,
        "heartbeat_at": now,
        "updated_at": now,
    }


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    if moment is None:
        return None
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def _schedule_slices(tenant_id: UUID, document_id: UUID) -> None:
    from knowledge.tasks import schedule_slices  # noqa: PLC0415 - tasks call services

    schedule_slices(tenant_id, document_id)


def _missing(document_id: UUID, space: VectorSpace) -> QuerySet[Chunk]:
    """The chunks that stand between a document and readiness."""
    chunks: QuerySet[Chunk] = Chunk.objects.filter(document_id=document_id, **{space.field: None})
    return chunks


def _find_space(document_id: UUID) -> VectorSpace | None:
    base_id = _base_of(document_id)
    return find_space(base_id) if base_id else None


def _hold_space(document_id: UUID) -> VectorSpace | None:
    base_id = _base_of(document_id)
    return hold_space(base_id) if base_id else None


def _base_of(document_id: UUID) -> UUID | None:
    ids = Document.objects.filter(id=document_id).values_list("knowledge_base_id", flat=True)
    base_id: UUID | None = ids.first()
    return base_id


def _next_batch(
    tenant_id: UUID, document_id: UUID, first: int, stop: int
) -> tuple[VectorSpace, list[Chunk]] | None:
    with tenant_scope(tenant_id):
        space = _find_space(document_id)
        if space is None:
            return None
        chunks = _missing(document_id, space).filter(ordinal__gte=first, ordinal__lt=stop)
        chunks = chunks.select_related("document").only(
            "id", "tenant_id", "content", "heading_path", "edited_at",
            "document__title", "document__tenant_id",
        )  # fmt: skip
        batch = list(chunks.order_by("ordinal")[:_BATCH])
    return (space, batch) if batch else None


def _store_vectors(
    tenant_id: UUID,
    document_id: UUID,
    space: VectorSpace,
    batch: Sequence[Chunk],
    vectors: Sequence[Sequence[float]],
) -> None:
    """Write vectors, unless the base has changed its model while they were computed."""
    with tenant_scope(tenant_id):
        if hold_space(space.base_id) != space:
            return
        stored = write_vectors(space.field, batch, vectors)
        Document.objects.filter(id=document_id).update(
            embedded_count=F("embedded_count") + stored, heartbeat_at=timezone.now()
        )


def _fail(document: Document, error: AppError | FileNotFoundError) -> None:
    if isinstance(error, AppError):
        known = error
    else:
        known = AppError("The stored file is missing. Upload the document again.")
    if not isinstance(error, ExtractionError):
        logger.warning("Document %s failed: %s", document.id, error)
    fail_document(document.tenant_id, document.id, known)
