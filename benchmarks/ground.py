"""What every measurement stands on: an own data folder, a fresh tenant, tasks run in this process."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from accounts.access import Actor, operator_actor
from accounts.models import User
from accounts.services.tenants import found_tenant
from accounts.tenancy import tenant_scope
from config.celery import app
from config.embedded.lease import running_servers
from knowledge.models import KnowledgeBase
from knowledge.services.documents import NewDocument, add_document
from knowledge.services.knowledge_bases import create_knowledge_base
from knowledge.services.lexical_index import reweigh_base
from knowledge.services.statistics import fold_statistics

ROOT = Path(__file__).resolve().parent.parent
EVALSETS = ROOT.parent / "shared" / "evalsets"
RESULTS = ROOT / "benchmarks" / "results"


@contextmanager
def ground() -> Iterator[Actor]:
    """Servers up, tables made, a tenant of its own."""
    with running_servers(settings.GROUNDWORK_DATA, database=True, broker=True):
        call_command("migrate", verbosity=0)
        app.conf.task_always_eager = True
        owner = User.objects.create_user(f"bench-{uuid.uuid4().hex}@example.com")
        yield operator_actor(found_tenant(name="Benchmark", owner=owner).id)


def fill_base(actor: Actor, name: str, documents: Sequence[tuple[str, str, str]]) -> KnowledgeBase:
    """A base with documents `(id, title, text)`, through the product's own ingestion."""
    with tenant_scope(actor.tenant_id):
        base = create_knowledge_base(actor=actor, name=name, chunk_size=480)
    for external_id, title, text in documents:
        new = NewDocument(
            f"{external_id}.txt".replace("/", "-"), title=title, external_id=external_id
        )
        with tenant_scope(actor.tenant_id):
            add_document(actor=actor, base=base, stream=io.BytesIO(text.encode()), new=new)
    with tenant_scope(actor.tenant_id):
        fold_statistics(base.id)
        base.refresh_from_db()
        reweigh_base(base)
    return base


def write_rows(name: str, rows: Sequence[dict[str, object]]) -> None:
    """Keep the rows as JSON for whoever compares them."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / name).write_text(json.dumps({"rows": list(rows)}, indent=1, ensure_ascii=False))
