"""Indexing files and folders from the command line, with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import Count, Q, Sum
from tqdm import tqdm

from accounts.access import Action, Actor
from accounts.tenancy import tenant_scope
from config.errors import AppError, FieldError, InvalidInputError, NotFoundError
from knowledge.access import access_knowledge_base
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import NewDocument, Outcome, add_document
from knowledge.services.knowledge_bases import create_knowledge_base

_POLL_S = 0.5
_SKIPPED_FOLDERS = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"}


@dataclass(slots=True)
class IngestReport:
    """What became of each file."""

    outcomes: dict[Outcome, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    ready: int = 0
    chunks: int = 0

    def summary(self) -> str:
        """One line for the terminal."""
        parts = [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        return (
            f"{', '.join(parts) or 'no files'}; {self.ready} ready with {self.chunks} chunks, "
            f"{len(self.failures)} failed."
        )


def ingest_paths(actor: Actor, slug: str, paths: Sequence[Path]) -> IngestReport:
    """Add every file under the paths and wait until they are indexed. A file keeps its identity by its
    path, so running it again replaces what changed and skips what did not. Interrupting loses nothing:
    the workers go on with what has been added."""
    _check(paths)
    report, ids = IngestReport(), []
    with tenant_scope(actor.tenant_id):
        base = _base(actor, slug)
    files = list(_files(paths))
    for path in tqdm(files, desc="Adding", unit="file", disable=None):
        added = _add(actor, base, path, report)
        if added is not None:
            ids.append(added)
    _wait(actor, ids, report)
    return report


def _check(paths: Sequence[Path]) -> None:
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise InvalidInputError(
            f"There is no {', '.join(missing)}.", [FieldError("PATH", "Must be a file or folder.")]
        )


def _base(actor: Actor, slug: str) -> KnowledgeBase:
    try:
        return access_knowledge_base(actor, slug, Action.WRITE)
    except NotFoundError:
        return create_knowledge_base(actor=actor, name=slug, slug=slug)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_file():
            yield path
            continue
        for found in sorted(path.rglob("*")):
            inside = found.relative_to(path).parts
            hidden = any(part.startswith(".") or part in _SKIPPED_FOLDERS for part in inside)
            if found.is_file() and not hidden:
                yield found


def _add(actor: Actor, base: KnowledgeBase, path: Path, report: IngestReport) -> object | None:
    new = NewDocument(filename=path.name, external_id=f"file:{path.resolve()}"[-500:])
    try:
        with path.open("rb") as stream, tenant_scope(actor.tenant_id):
            added = add_document(actor=actor, base=base, stream=stream, new=new)
    except (AppError, OSError) as error:
        report.failures.append(f"{path}: {error}")
        return None
    report.outcomes[added.outcome] = report.outcomes.get(added.outcome, 0) + 1
    return added.document.id


def _wait(actor: Actor, ids: Sequence[object], report: IngestReport) -> None:
    with tqdm(total=0, desc="Indexing", unit="chunk", disable=None) as bar:
        while True:
            with tenant_scope(actor.tenant_id):
                rows = Document.objects.filter(Q(id__in=ids) | Q(replaces_id__in=ids))
                state = rows.aggregate(
                    total=Sum("chunk_count"),
                    done=Sum("embedded_count"),
                    unfinished=Count("id", filter=Q(status__in=["pending", "processing"])),
                )
            bar.total, bar.n = state["total"] or 0, min(state["done"] or 0, state["total"] or 0)
            bar.set_postfix_str(f"{state['unfinished']} documents to go")
            bar.refresh()
            if not state["unfinished"]:
                break
            time.sleep(_POLL_S)
    with tenant_scope(actor.tenant_id):
        for document in rows.defer("extracted_text"):
            if document.status == Document.Status.FAILED:
                report.failures.append(f"{document.filename}: {document.error}")
            else:
                report.ready += 1
                report.chunks += document.chunk_count
