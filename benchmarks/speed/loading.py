"""Documents and generated chunks straight into the tables, with facts that filters can ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
from django.db import connection

from accounts.tenancy import new_id
from benchmarks.speed import copying
from benchmarks.speed.corpus import Row, generate
from benchmarks.speed.material import Material
from knowledge.models import Document, KnowledgeBase

CHUNKS_IN_DOCUMENT = 8
GROUPS = 1_000
RARE = 10_000  # the metadata field `rare` has so many different values
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
_RESTRICTED = 10  # of so many documents one is for a group only
_AT_ONCE = 2_000  # documents
_COLUMNS = (
    'id, tenant_id, knowledge_base_id, document_id, ordinal, content, heading_path, start, "end", '
    "token_count, language, lexemes, lexical_weights, lexical_length, embedding, fingerprint, "
    "principals, live, enabled"
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the n-th document of a base. `place` is its place in the order of time, `draw`
    decides who may read it: neither has to do with the number, by which filters choose."""

    number: int
    place: int
    draw: int

    @property
    def metadata(self) -> dict[str, int]:
        """Values that one in 2, in 100 and in 10,000 documents share."""
        return {"half": self.number % 2, "percent": self.number % 100, "rare": self.number % RARE}

    @property
    def updated_at(self) -> datetime:
        """A minute after the one before."""
        return EPOCH + timedelta(minutes=self.place)

    @property
    def principals(self) -> list[str]:
        """One in ten is for one of the groups, the others are for everyone."""
        group, rest = divmod(self.draw, _RESTRICTED)
        return ["public"] if rest else [f"group:{group % GROUPS}"]


def documents_of(chunks: int) -> int:
    """How many documents so many chunks make."""
    return -(-chunks // CHUNKS_IN_DOCUMENT)


def document_facts(chunks: int) -> list[Facts]:
    """The facts of every document, always the same."""
    chance, count = np.random.default_rng(0), documents_of(chunks)
    places, draws = chance.permutation(count).tolist(), chance.permutation(count).tolist()
    return [Facts(number, *drawn) for number, drawn in enumerate(zip(places, draws, strict=True))]


def load_chunks(base: KnowledgeBase, chunks: int, material: Material, seed: int) -> None:
    """Generate chunks with their documents into an empty base. Statistics and indexes are not made."""
    facts = document_facts(chunks)
    ids = [new_id() for _ in facts]
    rows = [_document(base, *each, chunks) for each in zip(ids, facts, strict=True)]
    Document.unscoped.bulk_create(rows, batch_size=_AT_ONCE)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY knowledge_chunk ({_COLUMNS}) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.write(copying.HEADER)
        for record in _records(
            base, ids, facts, material, generate(material.passages, chunks, seed)
        ):
            copy.write(record)
        copy.write(copying.TRAILER)


def _document(base: KnowledgeBase, row_id: UUID, facts: Facts, chunks: int) -> Document:
    held = min(CHUNKS_IN_DOCUMENT, chunks - facts.number * CHUNKS_IN_DOCUMENT)
    return Document(
        id=row_id,
        tenant_id=base.tenant_id,
        knowledge_base_id=base.id,
        title=f"Document {facts.number}",
        filename=f"{facts.number}.txt",
        source=("upload", "wiki")[facts.number % 2],
        external_id=str(facts.number),
        content_hash=str(facts.number),
        metadata=facts.metadata,
        principals=facts.principals,
        source_updated_at=facts.updated_at,
        status=Document.Status.READY,
        stage=Document.Stage.DONE,
        chunk_count=held,
        embedded_count=held,
    )


def _records(
    base: KnowledgeBase,
    ids: Sequence[UUID],
    facts: Sequence[Facts],
    material: Material,
    rows: Iterable[Row],
) -> Iterator[bytes]:
    owner = (base.tenant_id.bytes, base.id.bytes)
    language = material.language.encode()
    for number, row in enumerate(rows):
        document, ordinal = divmod(number, CHUNKS_IN_DOCUMENT)
        content = row.content.encode()
        yield copying.record(
            (
                new_id().bytes, *owner, ids[document].bytes, copying.integer(ordinal), content,
                copying.texts((), copying.TEXT), copying.integer(0), copying.integer(len(row.content)),
                copying.integer(row.length), language, row.lexemes, row.weights,
                copying.integer(row.length), row.vector, copying.bigint(_scattered(number)),
                copying.texts(facts[document].principals, copying.VARCHAR), copying.TRUE, copying.TRUE,
            )
        )  # fmt: skip


def _scattered(number: int) -> int:
    """A fingerprint that resembles no other one: the numbers times a large odd one."""
    return number * 0x9E3779B97F4A7C15 % 2**63
