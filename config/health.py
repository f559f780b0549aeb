"""Whether the process lives (`/healthz`) and whether it can serve (`/readyz`)."""

from __future__ import annotations

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

_TIMEOUT_S = 2


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when requests can be served, else 503 with what is missing."""
    problems = {
        name: problem
        for name, problem in (("database", _database_problem()), ("broker", _broker_problem()))
        if problem
    }
    if "database" not in problems and (problem := _migrations_problem()):
        problems["migrations"] = problem
    if problems:
        return JsonResponse({"status": "unavailable", "missing": problems}, status=503)
    return JsonResponse({"status": "ok"})


def _database_problem() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "The database does not answer."
    return ""


def _broker_problem() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        ) as client:
            client.ping()
    except redis.RedisError:
        return "The broker does not answer."
    return ""


def _migrations_problem() -> str:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not waiting:
        return ""
    return f"{len(waiting)} migrations are not applied; run `python manage.py migrate`."
