"""Documents through the real pipeline with real workers: how much of the time is not extraction and embedding."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings

from accounts.access import Actor
from accounts.tenancy import new_id, tenant_scope
from benchmarks.ground import ROOT
from benchmarks.progress import say
from benchmarks.speed.bench import SERVING_THREADS, Bench
from benchmarks.speed.comparison import EMBEDDER
from benchmarks.speed.measurement import timed
from benchmarks.speed.processes import deadlocks
from benchmarks.speed.web import environment, stop
from config.celery import app
from knowledge.extraction.sandbox import extract_file
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.chunking import chunk_text
from knowledge.services.documents import NewDocument, add_document
from knowledge.services.knowledge_bases import create_knowledge_base, delete_knowledge_base
from knowledge.services.lexical_index import context_of, text_in_context
from providers.base import Embedder

SHAPE = "ingestion"
WORKERS = (1, 2)
_PASSAGES_IN_DOCUMENT = 4
_BATCH = 32  # passages that a worker embeds at once
_TIMEOUT_S = 1800.0
_EVERY_S = 0.1
_COUNTERS_S = 1.5  # until PostgreSQL has published its counters


@dataclass(frozen=True, slots=True)
class File:
    """A document as it arrives."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Alone:
    """Reading the files and computing the vectors of their passages, and nothing else."""

    passages: int
    reading_s: float
    embedding_s: float

    @property
    def seconds(self) -> float:
        """Both."""
        return self.reading_s + self.embedding_s


@dataclass(frozen=True, slots=True)
class Brought:
    """What workers did from the first document handed over to the last one done."""

    seconds: float
    chunks: int
    failed: int


def measure(bench: Bench) -> None:
    """Everything with one and two workers; the two costly steps by themselves before and after each."""
    files = _files(bench)
    alone = [_measure_alone(bench, files)]
    for workers in WORKERS:
        say(f"{len(files)} documents through {workers} worker processes …")
        with _working(workers):
            _bring_in(bench.actor, files[:2] * workers)  # every process loads its model
            before = deadlocks()
            brought = _bring_in(bench.actor, files)
            time.sleep(_COUNTERS_S)
            dead = deadlocks() - before
        alone.append(_measure_alone(bench, files))
        alone_s = (alone[-2].seconds + alone[-1].seconds) / 2
        _report(bench, len(files), workers, brought, {
            "ingest_overhead": (1 - alone_s / (workers * brought.seconds), "share"),
            "deadlocks": (dead, "count"),
        })  # fmt: skip
        if brought.chunks != alone[0].passages:
            bench.results.remark(
                f"{workers} workers made {brought.chunks} chunks where {alone[0].passages} were expected."
            )
    _report_alone(bench, len(files), alone)


def _report(bench: Bench, size: int, workers: int, brought: Brought, more: dict[str, tuple[float, str]]) -> None:  # fmt: skip
    system = f"{workers} workers" if workers > 1 else "1 worker"
    rows = {
        **more,
        "documents": (size / brought.seconds, "documents/s"),
        "chunks": (brought.chunks / brought.seconds, "chunks/s"),
        "failed": (brought.failed, "documents"),
    }
    for metric, (value, unit) in rows.items():
        bench.results.add(SHAPE, size, system, metric, value, unit)


def _report_alone(bench: Bench, size: int, alone: Sequence[Alone]) -> None:
    reading_s = sum(one.reading_s for one in alone) / len(alone)
    embedding_s = sum(one.embedding_s for one in alone) / len(alone)
    for system, metric, value, unit in (
        ("extraction", "seconds", reading_s, "s"),
        (EMBEDDER, "seconds", embedding_s, "s"),
        (EMBEDDER, "chunks", alone[0].passages / embedding_s, "chunks/s"),
    ):
        bench.results.add(SHAPE, size, system, metric, value, unit)


def _files(bench: Bench) -> list[File]:
    """Plain text and Markdown in turn; none is like another."""
    texts, files = bench.material("en").texts, []
    for number in range(bench.options.documents):
        parts = [
            texts[(number * _PASSAGES_IN_DOCUMENT + part) % len(texts)].partition("\n")
            for part in range(_PASSAGES_IN_DOCUMENT)
        ]
        title = f"Record {number}"
        if number % 2:
            body = "\n\n".join(f"## {heading or title}\n\n{text}" for heading, _, text in parts)
            files.append(File(f"{number}.md", title, f"# {title}\n\n{body}\n"))
        else:
            body = "\n\n".join(f"{heading}\n\n{text}" for heading, _, text in parts)
            files.append(File(f"{number}.txt", title, f"{title}\n\n{body}\n"))
    return files


def _measure_alone(bench: Bench, files: Sequence[File]) -> Alone:
    say(f"Extraction and embedding of {len(files)} documents by themselves …")
    embedder = bench.embedder
    embedder.embed_passages(["warm-up"])
    passages, reading_ms, embedding_ms = 0, 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder) / file.name
            path.write_text(file.text)
            texts, ms = _passages(path, file, embedder)
            reading_ms += ms
            passages += len(texts)
            for begin in range(0, len(texts), _BATCH):
                embedding_ms += timed(embedder.embed_passages, texts[begin : begin + _BATCH])[0]
    return Alone(passages, reading_ms / 1000, embedding_ms / 1000)


def _passages(path: Path, file: File, embedder: Embedder) -> tuple[list[str], float]:
    """What is embedded of a file, and how long reading it took."""
    ms, extracted = timed(extract_file, path, file.name)
    options = KnowledgeBase().chunking_options()
    drafts = chunk_text(extracted, options, embedder, context_of(file.title, ()))
    return [text_in_context(file.title, draft.heading_path, draft.content) for draft in drafts], ms


@contextmanager
def _working(processes: int) -> Iterator[None]:
    """Workers as `make up` starts them; tasks go through the broker meanwhile."""
    command = [
        sys.executable, "-m", "celery", "--app", "config.celery", "--quiet", "worker", "--loglevel", "INFO",
        "--concurrency", str(processes), "--without-gossip", "--without-mingle",
    ]  # fmt: skip
    eager, app.conf.task_always_eager = app.conf.task_always_eager, False
    with (settings.GROUNDWORK_DATA.root / "speed-worker.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=ROOT, env=environment(SERVING_THREADS, REMAP_SIGTERM="SIGQUIT"),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield
        finally:
            stop(process)
            app.conf.task_always_eager = eager


def _bring_in(actor: Actor, files: Sequence[File]) -> Brought:
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name=f"brought in {new_id()}")
    started = time.perf_counter()
    for number, file in enumerate(files):
        new = NewDocument(file.name, title=file.title, external_id=f"{number}")
        with tenant_scope(actor.tenant_id):
            stream = io.BytesIO(file.text.encode())
            add_document(actor=actor, base=base, stream=stream, new=new)
    _wait_until_done(actor, base.id)
    seconds = time.perf_counter() - started
    with tenant_scope(actor.tenant_id):
        chunks = Chunk.objects.filter(knowledge_base_id=base.id).count()
        failed = Document.objects.filter(knowledge_base_id=base.id, status=Document.Status.FAILED).count()  # fmt: skip
        delete_knowledge_base(actor=actor, base=base)
    return Brought(seconds, chunks, failed)


def _wait_until_done(actor: Actor, base_id: UUID) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    unfinished = [Document.Status.PENDING, Document.Status.PROCESSING]
    while time.monotonic() < deadline:
        with tenant_scope(actor.tenant_id):
            if not Document.objects.filter(knowledge_base_id=base_id, status__in=unfinished).exists():  # fmt: skip
                return
        time.sleep(_EVERY_S)
    raise RuntimeError("The workers did not finish; see speed-worker.log in the data folder.")
