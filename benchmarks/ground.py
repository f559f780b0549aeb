"""What every measurement stands on: an own data folder, a tenant, tasks run in this process."""

from __future__ import annotations

import fcntl
import io
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from django.conf import settings
from django.core.management import call_command

from accounts.access import Actor, operator_actor
from accounts.models import Tenant, User
from accounts.services.tenants import found_tenant
from accounts.tenancy import tenant_scope
from benchmarks.vector_cache import CachedEmbedder
from config.celery import app
from config.embedded.lease import running_servers
from knowledge.models import KnowledgeBase
from knowledge.services.documents import NewDocument, add_document
from knowledge.services.knowledge_bases import create_knowledge_base
from knowledge.services.lexical_index import reweigh_base
from knowledge.services.statistics import fold_statistics
from providers.backends.e5 import MODEL as LOCAL_MODEL
from providers.registry import embedder_for

ROOT = Path(__file__).resolve().parent.parent
EVALSETS = ROOT.parent / "shared" / "evalsets"
RESULTS = ROOT / "benchmarks" / "results"
CHUNK_SIZE = (
    480  # tokens: most documents of the sets are then one chunk, which the model still reads whole
)


@contextmanager
def ground(slug: str = "") -> Iterator[Actor]:
    """Servers up, tables made, and a tenant: a new one, or the lasting one of a slug."""
    with running_servers(settings.GROUNDWORK_DATA, database=True, broker=True):
        call_command("migrate", verbosity=0)
        app.conf.task_always_eager = True
        tenant = Tenant.objects.filter(slug=slug).first() if slug else None
        if tenant is None:
            owner = User.objects.create_user(f"bench-{uuid.uuid4().hex}@example.com")
            tenant = found_tenant(name="Benchmark", owner=owner, slug=slug)
        yield operator_actor(tenant.id)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Refuse to run beside another run of the same name over the same data folder."""
    settings.GROUNDWORK_DATA.create()
    with (settings.GROUNDWORK_DATA.root / f"{name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(
                f"Another {name} uses {settings.GROUNDWORK_DATA.root}. Wait for it, or name another folder in "
                "GROUNDWORK_DATA."
            ) from None
        yield


@contextmanager
def kept_vectors(path: Path) -> Iterator[CachedEmbedder]:
    """Let the product take the vectors of its local model from a file, and put new ones there."""
    embedder = CachedEmbedder(embedder_for(LOCAL_MODEL), path)
    with patch("providers.registry._local", lambda: embedder):
        yield embedder


def fill_base(actor: Actor, name: str, documents: Sequence[tuple[str, str, str]]) -> KnowledgeBase:
    """A base with documents `(id, title, text)`, through the product's own ingestion."""
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name=name, chunk_size=CHUNK_SIZE)
    for external_id, title, text in documents:
        new = NewDocument(
            f"{external_id}.txt".replace("/", "-"), title=title, external_id=external_id
        )
        add(actor, base, text, new)
    settle(actor, base)
    return base


def add(actor: Actor, base: KnowledgeBase, text: str, new: NewDocument) -> None:
    """One document, read, cut, indexed and embedded when this returns."""
    with tenant_scope(actor.tenant_id):
        add_document(actor=actor, base=base, stream=io.BytesIO(text.encode()), new=new)


def settle(actor: Actor, base: KnowledgeBase) -> None:
    """What the product does in the background once a base is filled."""
    with tenant_scope(actor.tenant_id):
        fold_statistics(base.id)
        base.refresh_from_db()
        reweigh_base(base)


def write_rows(name: str, rows: Sequence[dict[str, object]], **facts: object) -> None:
    """Keep the rows as JSON for whoever compares them, and facts about the run under their own keys."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    content = {"rows": list(rows), **facts}
    (RESULTS / name).write_text(json.dumps(content, indent=1, ensure_ascii=False))
