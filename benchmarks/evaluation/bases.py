"""Judged sets in the product: filled through its ingestion, and used again only when provably the same.

A base is marked, once it is complete, with a digest of everything that decides its content: the documents,
the code that reads, cuts, analyses and embeds them, the pinned versions and the chunk size.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from benchmarks.evaluation.sets import JudgedDocument, JudgedSet
from benchmarks.ground import CHUNK_SIZE, ROOT, add, settle
from benchmarks.progress import Progress, say
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import NewDocument
from knowledge.services.knowledge_bases import (
    create_knowledge_base,
    delete_knowledge_base,
    update_knowledge_base,
)

_INGESTION = ("accounts", "config", "knowledge", "providers")


def base_of(actor: Actor, judged: JudgedSet, *, fresh: bool) -> KnowledgeBase:
    """A base with exactly the documents of the set. `fresh` never takes one of an earlier run."""
    mark = _mark(judged.documents)
    base = None if fresh else _kept(actor, judged, mark)
    if base is not None:
        say(f"{judged.name}: {len(judged.documents):,} documents kept from an earlier run")
        return base
    _remove(actor, judged.name)
    return _fill(actor, judged, mark)


def _fill(actor: Actor, judged: JudgedSet, mark: str) -> KnowledgeBase:
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name=judged.name, chunk_size=CHUNK_SIZE)
    progress = Progress(f"{judged.name}: documents ingested", len(judged.documents))
    for document in judged.documents:
        new = NewDocument(document.filename, title=document.title, external_id=document.id)
        add(actor, base, document.text or document.title, new)
        progress.advance()
    settle(actor, base)
    with tenant_scope(actor.tenant_id):
        _check_complete(base, judged)
        update_knowledge_base(actor=actor, base=base, description=mark)
    return base


def _check_complete(base: KnowledgeBase, judged: JudgedSet) -> None:
    rows = Document.objects.filter(knowledge_base=base).exclude(status=Document.Status.READY)
    failed = list(rows.values_list("external_id", "error")[:3])
    if failed or not _holds(base, judged):
        raise RuntimeError(f"{judged.name} was not ingested whole; first failures: {failed}")


def _kept(actor: Actor, judged: JudgedSet, mark: str) -> KnowledgeBase | None:
    with tenant_scope(actor.tenant_id):
        base: KnowledgeBase | None = KnowledgeBase.objects.filter(
            name=judged.name, description=mark
        ).first()
        return base if base is not None and _holds(base, judged) else None


def _holds(base: KnowledgeBase, judged: JudgedSet) -> bool:
    ready = Document.objects.filter(
        knowledge_base=base, status=Document.Status.READY, chunk_count__gt=0
    )
    return set(ready.values_list("external_id", flat=True)) == {
        document.id for document in judged.documents
    }


def _remove(actor: Actor, name: str) -> None:
    with tenant_scope(actor.tenant_id):
        for base in KnowledgeBase.objects.filter(name=name):
            delete_knowledge_base(actor=actor, base=base)


def _mark(documents: tuple[JudgedDocument, ...]) -> str:
    digest = hashlib.sha256(_pipeline_digest())
    for document in documents:
        digest.update(
            repr((document.id, document.title, document.text, document.filename)).encode()
        )
    return digest.hexdigest()


@cache
def _pipeline_digest() -> bytes:
    digest = hashlib.sha256(str(CHUNK_SIZE).encode())
    code = [path for room in _INGESTION for path in sorted((ROOT / room).rglob("*.py"))]
    filling = [ROOT / "benchmarks" / "ground.py", Path(__file__)]
    pins = [*sorted(ROOT.glob("requirements*.txt")), ROOT / "constraints.txt"]
    for path in [*code, *filling, *pins]:
        digest.update(repr((path.relative_to(ROOT).as_posix(), path.read_bytes())).encode())
    return digest.digest()
