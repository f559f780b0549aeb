"""Workers may die at any moment. `python -m tests.connectors.kill 100` kills more of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from connectors.models import Connection, SyncRun
from connectors.services.lease import STALE_AFTER, Lease, LeaseLostError
from connectors.services.runs import abandoned_runs, release_run
from tests.connectors.conftest import Syncs

Connect = Callable[..., Connection]


@pytest.mark.slow
def test_killed_workers_lose_and_double_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.connectors.kill", "6", "--seed", "7"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "6 kills" in done.stdout


def test_a_silent_worker_is_replaced_and_a_live_one_is_not(
    connect: Connect, syncs: Syncs, keeper: Actor
) -> None:
    run = syncs.start(connect())
    first = Lease.claim(keeper.tenant_id, run.id)
    assert first is not None
    assert Lease.claim(keeper.tenant_id, run.id) is None
    _age(keeper, run, STALE_AFTER - timedelta(seconds=5))
    assert abandoned_runs() == []
    assert Lease.claim(keeper.tenant_id, run.id) is None
    _age(keeper, run, STALE_AFTER + timedelta(seconds=1))
    assert abandoned_runs() == [(keeper.tenant_id, run.id)]
    second = Lease.claim(keeper.tenant_id, run.id)
    assert second is not None
    assert second.token != first.token
    first._beat_once()
    with pytest.raises(LeaseLostError):
        first.check()
    second._beat_once()
    second.check()


def test_a_released_run_is_claimed_at_once(connect: Connect, syncs: Syncs, keeper: Actor) -> None:
    run = syncs.start(connect())
    assert Lease.claim(keeper.tenant_id, run.id) is not None
    release_run(keeper.tenant_id, run.id)
    assert Lease.claim(keeper.tenant_id, run.id) is not None
    assert syncs.fresh(run).attempts == 2


def _age(actor: Actor, run: SyncRun, silence: timedelta) -> None:
    with tenant_scope(actor.tenant_id):
        SyncRun.objects.filter(id=run.id).update(heartbeat_at=timezone.now() - silence)
