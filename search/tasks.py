"""Celery tasks: each takes ids and calls one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from search.models import GoldenRun
from search.services.golden_runs import due_runs, golden_bases, run_scheduled


@shared_task(name="search.run_golden_queries")
def run_golden_queries_task(tenant_id: str, base_id: str, trigger: str) -> None:
    """Run the golden queries of one base."""
    run_scheduled(UUID(tenant_id), UUID(base_id), trigger)


@shared_task(name="search.check_golden_queries")
def check_golden_queries() -> None:
    """Queue a run for each base that was indexed anew, corrected or given another model. As this looks
    every few minutes only, many changes make one run."""
    for tenant_id, base_id, trigger in due_runs():
        run_golden_queries_task.delay(str(tenant_id), str(base_id), trigger.value)


@shared_task(name="search.run_all_golden_queries")
def run_all_golden_queries() -> None:
    """Queue a run for every base that has golden queries, whatever has changed or not: nightly."""
    for tenant_id, base_id in golden_bases():
        run_golden_queries_task.delay(
            str(tenant_id), str(base_id), GoldenRun.Trigger.SCHEDULE.value
        )
