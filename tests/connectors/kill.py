"""Kills workers in the middle of syncs and compares what is left with what the source has.

    python -m tests.connectors.kill 100 [--seed 1]

Three runs a connection: a first listing, changes, a complete listing with a sweep. Each run is worked on by a forked
process that is killed (SIGKILL) at a random moment, released as a restart does, and worked on again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings_test")  # noqa: TID251 - a program
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection as database  # noqa: E402
from django.db import connections  # noqa: E402
from django.test import override_settings  # noqa: E402

from accounts.access import Actor, operator_actor  # noqa: E402
from accounts.models import User  # noqa: E402
from accounts.services.tenants import found_tenant  # noqa: E402
from accounts.tenancy import tenant_scope  # noqa: E402
from config.embedded.lease import running_servers  # noqa: E402
from connectors import registry, tasks  # noqa: E402
from connectors.models import Connection, SyncItem, SyncRun  # noqa: E402
from connectors.services.batch import MOST_EVENTS  # noqa: E402
from connectors.services.connections import create_connection  # noqa: E402
from connectors.services.engine import run_sync  # noqa: E402
from connectors.services.runs import release_run, start_run  # noqa: E402
from knowledge import tasks as knowledge_tasks  # noqa: E402
from knowledge.models import Document, KnowledgeBase  # noqa: E402
from knowledge.services.knowledge_bases import create_knowledge_base  # noqa: E402
from knowledge.services.publish import publish_version  # noqa: E402
from tests.connectors.killed import KIND, world  # noqa: E402

_LONGEST_LIFE_S = 1.0
_MOST_KILLS = (
    12  # in one run; the engine gives a run up whose workers die at the same place 20 times
)
_PATIENCE_S = 120.0


@dataclass(slots=True)
class Report:
    """What was seen."""

    kills: int = 0
    faults: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    orphans: int = 0

    def expect(self, what: str, found: object, wanted: object) -> None:
        """Write down a difference."""
        if found != wanted:
            self.faults.append(f"{what}: {found!r:.300}, not {wanted!r:.300}")


def main(kills: int, seed: int) -> Report:
    """Connections with three runs each, until so many workers have been killed."""
    report, dice = Report(), random.Random(seed)
    with _installation() as originals:
        actor, base = _tenant()
        while report.kills < kills and not report.faults:
            connection_id = _connect(actor, base, f"Source at {report.kills} kills")
            for stage in (1, 2, 3):
                run_id = _start(actor, connection_id, stage)
                share = min(_MOST_KILLS, kills - report.kills)
                report.kills += _work_and_kill(actor.tenant_id, run_id, share, dice)
                _compare(report, actor.tenant_id, run_id, stage, originals)
                _publish(actor.tenant_id)
    return report


@contextmanager
def _installation() -> Iterator[Path]:
    """A database and a folder of originals of its own; nothing is indexed."""
    database.settings_dict["TEST"]["NAME"] = f"test_kills_{os.getpid()}"
    with ExitStack() as stack:
        stack.enter_context(
            running_servers(
                settings.GROUNDWORK_DATA,
                database=settings.EMBEDDED_DATABASE,
                broker=settings.EMBEDDED_BROKER,
            )
        )
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        storage = {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": folder},
        }
        stack.enter_context(override_settings(STORAGES={**settings.STORAGES, "default": storage}))
        before = database.settings_dict["NAME"]
        database.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        stack.callback(database.creation.destroy_test_db, before, verbosity=0)
        stack.callback(connections.close_all)
        registry.NATIVE[KIND] = "tests.connectors.killed.KilledConnector"
        for task in (tasks.sync_task, knowledge_tasks.process_document_task):
            setattr(task, "delay", lambda *_ids: None)  # noqa: B010 - mypy knows what delay returns
        yield Path(folder)


def _tenant() -> tuple[Actor, KnowledgeBase]:
    owner = User.objects.create_user("keeper@example.com", "x")
    actor = operator_actor(found_tenant(name="Keepers", owner=owner).id)
    with tenant_scope(actor.tenant_id):
        return actor, create_knowledge_base(actor=actor, name="Main")


def _connect(actor: Actor, base: KnowledgeBase, name: str) -> UUID:
    with tenant_scope(actor.tenant_id):
        made = create_connection(actor=actor, base=base, connector=KIND, name=name, schedule={})
    return made.id


def _start(actor: Actor, connection_id: UUID, stage: int) -> UUID:
    """A run over the source as it is at a stage; the last stage is listed completely."""
    kind = SyncRun.Kind.FULL if stage == 3 else SyncRun.Kind.INCREMENTAL
    with tenant_scope(actor.tenant_id):
        Connection.objects.filter(id=connection_id).update(config={"stage": stage})
        connection = Connection.objects.get(id=connection_id)
        run_id: UUID = start_run(actor=actor, connection=connection, kind=kind).id
    return run_id


# --- killing -------------------------------------------------------------------------------------


def _work_and_kill(tenant_id: UUID, run_id: UUID, kills: int, dice: random.Random) -> int:
    killed, deadline = 0, time.monotonic() + _PATIENCE_S + kills * 2 * _LONGEST_LIFE_S
    while time.monotonic() < deadline:
        child = _fork(lambda: run_sync(tenant_id, run_id))
        if killed < kills and not _ends(child, dice.uniform(0, _LONGEST_LIFE_S)):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            killed += 1
            os.waitpid(_fork(lambda: release_run(tenant_id, run_id)), 0)
        elif killed >= kills:
            _, status = os.waitpid(child, 0)
            if status == 0:
                return killed
            raise SystemExit(f"The worker ended with status {status}.")
        else:
            return killed  # it was done before it could be killed
    raise SystemExit("The run does not end.")


def _fork(work: Callable[[], object]) -> int:
    """A process of its own, with connections of its own."""
    connections.close_all()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _ends(child: int, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            if status:
                raise SystemExit(f"The worker ended by itself with status {status}.")
            return True
        time.sleep(0.001)
    return False


# --- comparing -----------------------------------------------------------------------------------


def _compare(report: Report, tenant_id: UUID, run_id: UUID, stage: int, originals: Path) -> None:
    wanted, before = world(stage), world(stage - 1)
    with tenant_scope(tenant_id):
        run = SyncRun.objects.get(id=run_id)
        every = list(Document.objects.exclude(original=""))
        items = list(SyncItem.objects.filter(connection_id=run.connection_id))
    documents = [one for one in every if one.source_id == run.connection_id and not one.replaces_id]
    versions = {one.replaces_id: one for one in every if one.replaces_id}
    report.expect(f"stage {stage}, status", run.status, "partial" if stage == 1 else "succeeded")
    report.expect("ids", sorted(one.external_id for one in documents), sorted(wanted))
    for one in documents:
        newest = versions.get(one.id, one)
        thing = wanted.get(one.external_id)
        if thing is not None:
            digest = hashlib.sha256(thing.content.encode()).hexdigest()
            report.expect(f"content of {one.external_id}", newest.content_hash, digest)
            report.expect(f"label of {one.external_id}", newest.metadata.get("label"), thing.label)
    stored = {one.external_id: one.document_id for one in items if one.status == "stored"}
    report.expect("ledger", stored, {one.external_id: one.id for one in documents})
    changed = sum(before[name] != wanted[name] for name in before.keys() & wanted.keys())
    unread = stage == 2  # the item that could not be read goes without ever having been a document
    report.expect("balance", run.inserted - run.deleted + unread, len(wanted) - len(before))
    report.expect("updates counted", run.updated >= changed, True)
    _compare_originals(report, [one.original.name for one in every], originals)
    report.lines.append(
        f"stage {stage}: {len(documents)} documents, {run.inserted} inserted, {run.updated} updated, "
        f"{run.kept} kept, {run.deleted} deleted, {run.failed} failed, {report.orphans} orphans"
    )


def _compare_originals(report: Report, names: list[str], originals: Path) -> None:
    files = {str(path.relative_to(originals)) for path in originals.rglob("*") if path.is_file()}
    report.expect("originals that are missing", set(names) - files, set())
    report.orphans = len(files - set(names))
    most = report.kills * MOST_EVENTS
    report.expect(f"orphans ({report.orphans}) are few", report.orphans <= most, True)


def _publish(tenant_id: UUID) -> None:
    """What indexing does in the end, without its work."""
    with tenant_scope(tenant_id):
        for version in Document.objects.exclude(replaces=None):
            publish_version(version)
        Document.objects.update(status=Document.Status.READY)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    outcome = main(chosen.kills, chosen.seed)
    sys.stdout.write("\n".join([*outcome.lines, f"{outcome.kills} kills", *outcome.faults]) + "\n")
    sys.exit(1 if outcome.faults else 0)
