"""From events to documents: compare, fetch what is new, commit documents and position together."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from mimetypes import guess_type
from typing import Any, BinaryIO, cast
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.tenancy import tenant_scope
from config.errors import AppError, CredentialsError, RateLimitedError, TransientError
from connectors.base import Connector, Deletion, Failure, File, Record, Text
from connectors.models import Connection, SyncItem, SyncRun
from connectors.services import capture
from connectors.services.deletions import remove_items
from connectors.services.lease import Lease
from connectors.services.principals import readers_of
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import NewDocument, store_document, text_filename
from knowledge.services.source_facts import SourceFacts, update_source_facts

logger = logging.getLogger(__name__)

MOST_EVENTS = 50
_MOST_BYTES = 32 * 1024 * 1024  # of fetched content that waits for its commit
_IN_MEMORY = 1024 * 1024
_MOST_FAILING = 8  # fetches in a row that fail for reasons of the source end the run
_FIRST_RETRY = timedelta(minutes=10)
_LAST_RETRY = timedelta(days=1)
_WITHOUT_TEXT = ("image/", "video/", "audio/", "font/")

Stage = SyncItem.Stage


@dataclass(slots=True)
class _Prepared:
    """What is to be written for one external id."""

    event: Record | Failure
    item: SyncItem
    facts: SourceFacts | None = None
    stream: BinaryIO | None = None  # new content
    stage: str = ""
    error: str = ""
    skipped: str = ""


@dataclass(slots=True)
class Batch:
    """Collects events of a run and commits them under its lease. One external id stands once in it: what
    was said last. `outcomes` of the last commit are names of the run's counts."""

    lease: Lease
    connection: Connection
    base: KnowledgeBase
    connector: type[Connector[Any]]
    max_bytes: int
    events: dict[str, Record | Failure | Deletion] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    failing: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return len(self.events) >= MOST_EVENTS

    def add(self, event: Record | Failure | Deletion) -> None:
        """Take an event; the last one about an id counts, but a failure undoes no content."""
        external_id = bounded(event.external_id, 500)
        if isinstance(event, Failure) and isinstance(self.events.get(external_id), Record):
            self.commit()
        self.events.pop(external_id, None)
        self.events[external_id] = event

    def commit(self, cursor: Mapping[str, Any] | None = None) -> None:
        """Write everything collected, and the position that covers it. Raises what ends the run."""
        events, self.events = self.events, {}
        self.outcomes = {}
        items = self._known_items(list(events))
        waiting: list[_Prepared] = []
        gone = [items[name] for name, event in events.items()
                if isinstance(event, Deletion) and name in items]  # fmt: skip
        with ExitStack() as files:
            size = 0
            for name, event in events.items():
                if isinstance(event, Deletion):
                    continue
                self.lease.check()
                prepared = self._prepare(event, items.get(name) or self._new_item(name), files)
                waiting.append(prepared)
                size += _size(prepared.stream)
                if size > _MOST_BYTES:
                    self._write(waiting, [], None)
                    files.close()
                    waiting, size = [], 0
            self._write(waiting, gone, cursor)

    def _known_items(self, external_ids: Sequence[str]) -> dict[str, SyncItem]:
        if not external_ids:
            return {}
        with tenant_scope(self.lease.tenant_id):
            found = SyncItem.objects.filter(
                connection=self.connection, external_id__in=external_ids
            )
            items = {item.external_id: item for item in found}
            ids = [item.document_id for item in items.values() if item.document_id]
            here = Document.objects.filter(id__in=ids, knowledge_base=self.base)
            existing = set(here.values_list("id", flat=True))
        for item in items.values():
            if item.document_id not in existing:  # deleted or moved by hand: the source has it
                item.document_id, item.version, item.facts_hash = None, "", ""
        return items

    def _new_item(self, external_id: str) -> SyncItem:
        return SyncItem(
            tenant_id=self.connection.tenant_id,
            connection=self.connection,
            external_id=external_id,
        )

    def _prepare(self, event: Record | Failure, item: SyncItem, files: ExitStack) -> _Prepared:
        if isinstance(event, Failure):
            return _Prepared(event, item, stage=Stage.LIST, error=event.message)
        prepared = _Prepared(event, item, facts=self._facts(event))
        if _is_current(event, item):
            return prepared
        if reason := self._without_text(event):
            prepared.skipped = reason
            return prepared
        try:
            prepared.stream = self._content(event, files)
            self.failing = 0
        except (CredentialsError, RateLimitedError):
            raise
        except TransientError as error:
            self.failing += 1
            if self.failing >= _MOST_FAILING:
                raise
            prepared.stage, prepared.error = Stage.FETCH, error.message
        except AppError as error:
            prepared.stage, prepared.error = Stage.FETCH, error.message
        return prepared

    def _facts(self, record: Record) -> SourceFacts:
        return SourceFacts(
            title=clean(record.title, 500),
            url=clean(record.url, 2000),
            author=clean(record.author, 300),
            breadcrumbs=tuple(clean(crumb, 300) for crumb in record.breadcrumbs),
            metadata=_clean_value(json.loads(json.dumps(dict(record.metadata), default=str))),
            principals=tuple(readers_of(self.connection, self.connector, record)),
            created_at=_aware(record.created_at),
            updated_at=_aware(record.updated_at),
        )

    def _without_text(self, record: Record) -> str:
        """Why a record is not worth fetching; empty when it is."""
        body = record.body
        if isinstance(body, Text):
            return ""
        kind = body.content_type or guess_type(body.filename)[0] or ""
        if kind.startswith(_WITHOUT_TEXT):
            return f"{kind.split('/')[0].capitalize()} files hold no text."
        if body.size is not None and body.size > self.max_bytes:
            return f"Larger than {self.max_bytes // 1024 // 1024} MB."
        return "The file is empty." if body.size == 0 else ""

    def _content(self, record: Record, files: ExitStack) -> BinaryIO:
        if isinstance(record.body, Text):
            text = record.body.text if record.body.text.strip() else record.title or "-"
            return io.BytesIO(text.replace("\x00", "").encode("utf-8", "replace"))
        copy = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by `files`
        files.enter_context(copy)
        with record.body.open() as source:
            shutil.copyfileobj(source, copy, 256 * 1024)
        copy.seek(0)
        return cast(BinaryIO, copy)

    # --- writing -------------------------------------------------------------------------------

    def _write(
        self,
        waiting: Sequence[_Prepared],
        gone: Sequence[SyncItem],
        cursor: Mapping[str, Any] | None,
    ) -> None:
        """One transaction: documents, ledger, counts, position."""
        with tenant_scope(self.lease.tenant_id):
            run = self.lease.hold()
            for prepared in waiting:
                outcome = self._apply(prepared, run)
                self.outcomes[prepared.item.external_id] = outcome
                setattr(run, outcome, getattr(run, outcome) + 1)
            self._save_items([prepared.item for prepared in waiting])
            self._mark_seen([prepared.item for prepared in waiting])
            if gone:
                remove_items(self.connection, run, gone)
            if cursor is not None:
                if run.cursor != cursor:
                    run.attempts = 0  # it gets on; what counts is how often it does not
                run.cursor = dict(cursor)
                if run.kind == SyncRun.Kind.INCREMENTAL:
                    Connection.objects.filter(id=self.connection.id).update(cursor=run.cursor)
            run.heartbeat_at = timezone.now()
            run.save()

    def _apply(self, prepared: _Prepared, run: SyncRun) -> str:
        """Write one; returns the count it adds to."""
        item, event, now = prepared.item, prepared.event, timezone.now()
        item.seen_run, item.seen_at = run.id, now
        item.scope = clean(event.scope, 500) or item.scope
        if isinstance(event, Record):
            item.title = clean(event.title, 500)
        if prepared.skipped:
            item.status, item.error = SyncItem.Status.SKIPPED, prepared.skipped
            return "kept"
        if prepared.error:
            return self._fail(prepared, now)
        return self._store(prepared, now)

    def _store(self, prepared: _Prepared, now: datetime) -> str:
        item, record, facts = prepared.item, cast(Record, prepared.event), prepared.facts
        assert facts is not None  # noqa: S101 - a record has facts
        known, changed = item.document_id, False
        try:
            with transaction.atomic():
                if prepared.stream is not None:
                    changed = self._store_content(item, record, facts, prepared.stream)
                if known is not None and item.facts_hash != facts.digest:
                    update_source_facts(known, facts)
                    changed = True
        except AppError as error:
            prepared.stage, prepared.error = Stage.STORE, error.message
            return self._fail(prepared, now)
        item.facts_hash, item.version = facts.digest, clean(record.version, 500)
        item.status, item.stage, item.error = SyncItem.Status.STORED, "", ""
        item.attempts, item.next_retry_at = 0, None
        if not changed and known is not None:
            return "kept"
        if self.connection.keeps_capture:
            capture.keep(self.connection, record, prepared.stream)
        return "inserted" if known is None else "updated"

    def _store_content(
        self, item: SyncItem, record: Record, facts: SourceFacts, stream: BinaryIO
    ) -> bool:
        """Whether the content is new; the item then names its document."""
        new = NewDocument(
            filename=_filename(record),
            title=facts.title,
            content_type=record.body.content_type,
            source=self.connection.connector,
            source_uri=facts.url,
            source_id=self.connection.id,
            external_id=item.external_id,
            author=facts.author,
            breadcrumbs=facts.breadcrumbs,
            metadata=dict(facts.metadata),
            principals=facts.principals,
            created_at=facts.created_at,
            updated_at=facts.updated_at,
        )
        added = store_document(base=self.base, stream=stream, new=new)
        item.document_id = added.document.id
        return added.outcome in {"created", "replacing", "retried"}

    def _fail(self, prepared: _Prepared, now: datetime) -> str:
        item = prepared.item
        item.status, item.stage = SyncItem.Status.FAILED, prepared.stage
        item.error = prepared.error.replace("\x00", "")[:2000]
        item.attempts += 1
        item.next_retry_at = now + min(_FIRST_RETRY * 2 ** min(item.attempts - 1, 10), _LAST_RETRY)
        return "failed"

    def _save_items(self, items: Sequence[SyncItem]) -> None:
        SyncItem.objects.bulk_create(
            items,
            update_conflicts=True,
            unique_fields=["tenant", "connection", "external_id"],
            update_fields=[
                "title", "scope", "document_id", "version", "facts_hash", "status", "stage", "error",
                "attempts", "next_retry_at", "seen_run", "seen_at",
            ],
        )  # fmt: skip

    def _mark_seen(self, items: Sequence[SyncItem]) -> None:
        ids: list[UUID] = [item.document_id for item in items if item.document_id]
        if ids:
            Document.objects.filter(id__in=ids).update(seen_at=timezone.now())


def bounded(text: str, length: int) -> str:
    """A text that fits, still unlike others that begin the same."""
    text = _storable(text)
    if len(text) <= length:
        return text
    return text[: length - 33] + "#" + hashlib.sha256(text.encode()).hexdigest()[:32]


def clean(text: str, length: int) -> str:
    """A text as the database takes it."""
    return _storable(text).strip()[:length]


def _storable(text: str) -> str:
    """Without what PostgreSQL takes in no text: NUL and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, list):
        return [_clean_value(one) for one in value]
    if isinstance(value, dict):
        return {_storable(key): _clean_value(one) for key, one in value.items()}
    return value


def _is_current(record: Record, item: SyncItem) -> bool:
    """Whether the content is surely what is stored. Text at hand is compared by its hash instead."""
    return (
        isinstance(record.body, File)
        and bool(record.version)
        and clean(record.version, 500) == item.version
        and item.status in {SyncItem.Status.STORED, SyncItem.Status.GONE, SyncItem.Status.SKIPPED}
        and (item.document_id is not None or item.status == SyncItem.Status.SKIPPED)
    )


def _filename(record: Record) -> str:
    if isinstance(record.body, File):
        return clean(record.body.filename, 500) or "file"
    return text_filename(clean(record.title, 200) or "record", record.body.content_type)


def _size(stream: BinaryIO | None) -> int:
    if stream is None:
        return 0
    end = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return end


def _aware(moment: datetime | None) -> datetime | None:
    if moment is None or timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment)
