"""Bases of generated chunks: copied in, counted, indexed by the product, and kept for the next run.

A base is marked with a digest of all that decides its content. Its marks also hold how long each step of
the filling took, so that a run which finds the base still reports them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from django.db import connection

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from benchmarks.ground import ROOT
from benchmarks.progress import say
from benchmarks.speed.corpus import average_length
from benchmarks.speed.loading import documents_of, load_chunks
from benchmarks.speed.material import Material
from benchmarks.speed.measurement import timed
from knowledge.models import Chunk, KnowledgeBase
from knowledge.services.base_indexes import LARGE, WORDS, build_index, drop_orphans
from knowledge.services.knowledge_bases import create_knowledge_base, delete_knowledge_base
from knowledge.services.statistics import count_chunks, fold_statistics

_COUNTED_AT_ONCE = 50_000  # chunks
_DECIDING = (
    "benchmarks/speed/corpus.py",
    "benchmarks/speed/loading.py",
    "knowledge/lexical/*.py",
    "knowledge/migrations/*.py",
    "knowledge/services/base_indexes.py",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A base to be had: whose, by which name, of how many chunks."""

    actor: Actor
    name: str
    chunks: int
    indexed: bool = False  # has its own indexes even if it is small

    @property
    def needs_indexes(self) -> bool:
        """Whether the base has its own indexes."""
        return self.indexed or self.chunks >= LARGE


@dataclass(frozen=True, slots=True)
class Filled:
    """A base that is there; `facts` are seconds by step and rows per second."""

    actor: Actor
    base: KnowledgeBase
    chunks: int
    facts: Mapping[str, float]

    @property
    def documents(self) -> int:
        """How many documents the chunks belong to."""
        return documents_of(self.chunks)


def filled(wanted: Sequence[Wanted], material: Material) -> list[Filled]:
    """The bases, in order; those that an earlier run has left are used again."""
    mark = _mark(material)
    kept = {want.name: found for want in wanted if (found := _kept(want, mark)) is not None}
    missing = [want for want in wanted if want.name not in kept]
    fresh = dict(zip((want.name for want in missing), _fill(missing, material, mark), strict=True))
    return [kept.get(want.name) or fresh[want.name] for want in wanted]


def _kept(want: Wanted, mark: str) -> Filled | None:
    with tenant_scope(want.actor.tenant_id):
        base = KnowledgeBase.objects.filter(name=want.name).first()
        if base is None or not base.description:
            return None
        noted = json.loads(base.description)
        whole = Chunk.objects.filter(knowledge_base_id=base.id, live=True).count() == want.chunks
    if noted["mark"] != mark or not whole:
        return None
    if want.needs_indexes:
        _index(base)  # a run that was broken off may have left them unused
    return Filled(want.actor, base, want.chunks, noted["facts"])


def _fill(wanted: Sequence[Wanted], material: Material, mark: str) -> list[Filled]:
    if not wanted:
        return []
    total = sum(want.chunks for want in wanted)
    say(f"Filling {len(wanted):,} bases with {total:,} chunks ({material.language}) …")
    bases = [_renewed(want, material) for want in wanted]
    copied_s = timed(_load, wanted, bases, material)[0] / 1000
    facts = []
    for want, base in zip(wanted, bases, strict=True):
        noted = {"rows/s": total / copied_s, "statistics_s": timed(_count, base)[0] / 1000}
        facts.append(noted | (_index(base) if want.needs_indexes else {}))
    _vacuum()
    return [_marked(*each, mark) for each in zip(wanted, bases, facts, strict=True)]


def _renewed(want: Wanted, material: Material) -> KnowledgeBase:
    with tenant_scope(want.actor.tenant_id):
        for base in KnowledgeBase.objects.filter(name=want.name):
            delete_knowledge_base(actor=want.actor, base=base)
        return create_knowledge_base(
            actor=want.actor,
            name=want.name,
            language=material.language,
            average_length=average_length(material.passages),
        )


def _load(wanted: Sequence[Wanted], bases: Sequence[KnowledgeBase], material: Material) -> None:
    for seed, (want, base) in enumerate(zip(wanted, bases, strict=True)):
        load_chunks(base, want.chunks, material, seed)


def _count(base: KnowledgeBase) -> None:
    """The statistics, by the product's own statements."""
    with tenant_scope(base.tenant_id):
        ids = list(Chunk.objects.filter(knowledge_base_id=base.id).values_list("id", flat=True))
        for begin in range(0, len(ids), _COUNTED_AT_ONCE):
            count_chunks(ids[begin : begin + _COUNTED_AT_ONCE], sign=1)
        fold_statistics(base.id)


def _index(base: KnowledgeBase) -> dict[str, float]:
    build = {"words": WORDS, "vectors": base.embedding_field}
    seconds = {
        f"build_{name}_s": timed(build_index, base.tenant_id, base.id, column)[0] / 1000
        for name, column in build.items()
    }
    with tenant_scope(base.tenant_id):
        base.refresh_from_db()
    if set(base.own_indexes) != set(build.values()):
        raise RuntimeError(f"The base {base.name} has no index on {sorted(build.values())}.")
    return seconds


def _vacuum() -> None:
    drop_orphans()
    with connection.cursor() as cursor:
        for table in ("chunk", "document", "termstatistic", "lengthstatistic"):
            cursor.execute(f"VACUUM (ANALYZE) knowledge_{table}")


def _marked(want: Wanted, base: KnowledgeBase, facts: dict[str, float], mark: str) -> Filled:
    with tenant_scope(base.tenant_id):
        base.description = json.dumps({"mark": mark, "facts": facts})
        base.save(update_fields=["description"])
    return Filled(want.actor, base, want.chunks, facts)


def _mark(material: Material) -> str:
    return hashlib.sha256(f"{material.digest} {_code_digest()}".encode()).hexdigest()


@cache
def _code_digest() -> str:
    """Once a process, for files may be edited while it runs what it has loaded."""
    digest = hashlib.sha256()
    for path in (path for pattern in _DECIDING for path in sorted(ROOT.glob(pattern))):
        digest.update(path.read_bytes())
    return digest.hexdigest()
