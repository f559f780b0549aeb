"""Everything on this machine with one command: servers, schema, first account, web, worker, beat."""

from __future__ import annotations

import errno
import fcntl
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from django.db import connections

from config.embedded.lease import running_servers
from config.env import child_environment
from config.readiness import answers
from config.supervisor import Program, Supervisor
from connectors.checks import manifest_faults
from connectors.tasks import resume_unfinished_runs
from knowledge.tasks import resume_unfinished_documents, resume_unfinished_reembeddings
from search.services.first_run import FirstRun, ensure_first_run

_READY_EVERY_S = 0.5


class Command(BaseCommand):
    """Runs until Ctrl-C; the data stays."""

    help = "Start the servers, migrate, and run web, worker and beat until Ctrl-C."
    requires_system_checks: list[str] = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Prepare, then supervise."""
        signal.signal(signal.SIGTERM, _interrupt)
        settings.GROUNDWORK_DATA.create()
        with _alone():
            _require_free_port()
            _require_sound_manifests()
            try:
                self._run()
            except KeyboardInterrupt:
                self.stdout.write("Stopped.")

    def _run(self) -> None:
        self.stdout.write("Preparing the embedding model …")
        _prepare_models()
        self.stdout.write("Starting the servers …")
        with running_servers(
            settings.GROUNDWORK_DATA,
            database=settings.EMBEDDED_DATABASE,
            broker=settings.EMBEDDED_BROKER,
        ):
            self.stdout.write("Migrating the database …")
            call_command("migrate", interactive=False, verbosity=0)
            made = ensure_first_run()
            if settings.EMBEDDED_BROKER:  # then the only workers are those started below
                resume_unfinished_documents()
                resume_unfinished_reembeddings()
                resume_unfinished_runs()
            connections.close_all()
            supervisor = Supervisor(_programs())
            threading.Thread(target=_announce, args=(supervisor, made), daemon=True).start()
            supervisor.run()
            self.stdout.write("Stopped. Your data stays in " + str(settings.GROUNDWORK_DATA.root))


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def _alone() -> Iterator[None]:
    """One `up` per data folder: two would fight over its schedule."""
    with (settings.GROUNDWORK_DATA.root / "up.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            folder = settings.GROUNDWORK_DATA.root
            message = f"Groundwork runs already from {folder}. Stop it, or set GROUNDWORK_DATA to another folder."
            raise CommandError(message) from error
        yield


def _require_free_port() -> None:
    host, port = settings.GROUNDWORK_BIND, settings.GROUNDWORK_PORT
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = f"Port {port} is in use."
            else:
                reason = f"Cannot listen on {host}:{port} ({error.strerror})."
            message = f"{reason} Choose another one with GROUNDWORK_PORT, e.g. GROUNDWORK_PORT={port + 1} make up"
            raise CommandError(message) from error


def _require_sound_manifests() -> None:
    if faults := manifest_faults():
        raise CommandError("\n".join(["Mend these connectors, or take them away:", *faults]))


def _prepare_models() -> None:
    command = [
        sys.executable,
        "-m",
        "providers.backends.e5",
        "build",
        str(settings.GROUNDWORK_MODEL_CACHE),
    ]
    done = subprocess.run(  # noqa: S603 - our own module
        command, check=False, cwd=settings.BASE_DIR, stdout=subprocess.DEVNULL
    )
    if done.returncode:
        raise CommandError("The embedding model could not be prepared; see the lines above.")


def _programs() -> list[Program]:
    threads = str(settings.GROUNDWORK_EMBED_THREADS)
    environment = child_environment(
        PYTHONUNBUFFERED="1",
        PYTHONWARNINGS="ignore",  # for developers, who see them in the tests
        OMP_NUM_THREADS=threads,
        OPENBLAS_NUM_THREADS=threads,
        MKL_NUM_THREADS=threads,
        REMAP_SIGTERM="SIGQUIT",  # Celery: give running tasks a moment, then put them back
    )
    celery = [sys.executable, "-m", "celery", "--app", "config.celery"]
    address = ["--bind", settings.GROUNDWORK_BIND, "--port", str(settings.GROUNDWORK_PORT)]
    workers = [
        "--concurrency",
        str(settings.GROUNDWORK_WORKERS),
        "--without-gossip",
        "--without-mingle",
    ]
    return [
        Program(
            "web",
            [sys.executable, "-m", "daphne", *address, "config.asgi:application"],
            environment,
        ),
        Program(
            "worker", [*celery, "--quiet", "worker", "--loglevel", "INFO", *workers], environment
        ),
        Program(
            "sync",
            [
                *celery,
                "--quiet",
                "worker",
                "--loglevel",
                "INFO",
                "--queues",
                "sync",
                "--pool",
                "threads",
                "--hostname",
                "sync@%h",
                "--concurrency",
                str(settings.GROUNDWORK_SYNCS + 4),  # the others deliver webhooks
                "--without-gossip",
                "--without-mingle",
            ],
            environment,
        ),
        Program(
            "beat", [*celery, "--quiet", "beat", "--loglevel", "WARNING", "--pidfile="], environment
        ),
    ]


def _announce(supervisor: Supervisor, made: FirstRun | None) -> None:
    """Say when the web server answers, and once what the first run made."""
    while not answers("/readyz"):
        if supervisor.is_stopping():
            return
        time.sleep(_READY_EVERY_S)
    for line in _first_run_lines(made) if made else ():
        supervisor.say("up", line)
    supervisor.say("up", f"Groundwork is ready: {settings.GROUNDWORK_URL}  (Ctrl-C stops it)")


def _first_run_lines(made: FirstRun) -> Iterator[str]:
    yield "Made for you, shown this once:"
    yield f"  mail      {made.email}"
    yield f"  password  {made.password}"
    yield f"  API key   {made.api_key}"
    yield f"  tenant    {made.tenant}, with the knowledge base “{made.knowledge_base}”"
    yield f"  kept in   {settings.GROUNDWORK_DATA.first_run}"
