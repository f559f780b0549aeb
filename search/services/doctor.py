"""Checks of an installation, each with what to do when it fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from accounts.tenancy import ROLE
from config.celery import app
from config.errors import AppError
from providers.registry import default_model, embedder_for

_LEAST_FREE_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its outcome."""

    name: str
    ok: bool
    message: str


def run_checks() -> Iterator[Check]:
    """Run all checks, in the order in which to mend them."""
    checks: dict[str, Callable[[], str]] = {
        "database": _database,
        "extensions": _extensions,
        "tenant role": _role,
        "migrations": _migrations,
        "broker": _broker,
        "workers": _workers,
        "embedding model": _embedder,
        "disk": _disk,
        "security": _security,
    }
    for name, check in checks.items():
        try:
            yield Check(name, ok=True, message=check())
        except (DatabaseError, redis.RedisError, AppError, RuntimeError, OSError) as error:
            yield Check(name, ok=False, message=str(error).strip())


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        where = "embedded" if settings.EMBEDDED_DATABASE else "outside"
        return f"PostgreSQL {cursor.fetchone()[0]}, {where}"


def _extensions() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extname, extversion FROM pg_extension ORDER BY 1")
        found = dict(cursor.fetchall())
    missing = {"vector", "pg_trgm"} - set(found)
    if missing:
        raise RuntimeError(f"Missing: {', '.join(missing)}. As a superuser: CREATE EXTENSION …")
    return f"vector {found['vector']}"


def _role() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", [ROLE])
        row = cursor.fetchone()
        if row is None or row[0]:
            raise RuntimeError(
                f"The role {ROLE} must exist, without SUPERUSER and BYPASSRLS. Run migrate."
            )
        cursor.execute("SELECT pg_has_role(current_user, %s, 'MEMBER')", [ROLE])
        if not cursor.fetchone()[0]:
            raise RuntimeError(f"GRANT {ROLE} TO the user in DATABASE_URL.")
    return f"{ROLE} cannot bypass row-level security"


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise RuntimeError(f"{len(plan)} to apply: python manage.py migrate")
    return "all applied"


def _broker() -> str:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.ping()
    return "answers, " + ("embedded" if settings.EMBEDDED_BROKER else "outside")


def _workers() -> str:
    answers = app.control.ping(timeout=2.0)
    if not answers:
        raise RuntimeError(
            "None answers, so nothing is indexed. Start `make up`, or a worker container."
        )
    return f"{len(answers)} answer"


def _embedder() -> str:
    model = default_model()
    vector = embedder_for(model).embed_queries(["doctor"])[0]
    return f"{model}, {len(vector)} dimensions"


def _disk() -> str:
    free = shutil.disk_usage(settings.GROUNDWORK_DATA.root).free
    if free < _LEAST_FREE_BYTES:
        raise RuntimeError(f"Only {free / 1e9:.1f} GB free in {settings.GROUNDWORK_DATA.root}.")
    return f"{free / 1e9:.0f} GB free"


def _security() -> str:
    if settings.DEVELOPMENT:
        return "development profile: for this machine only"
    if settings.DEBUG or not settings.SECURE_COOKIES:
        raise RuntimeError("Set DEBUG=0 and SECURE_COOKIES=1 in production.")
    return "production profile"
