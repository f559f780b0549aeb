"""/healthz and /readyz."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from config import health


def test_a_live_process_says_so_without_asking_anyone(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_ready(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]


def test_a_missing_broker_is_named(client: Client, db: None, settings: Any) -> None:
    settings.REDIS_URL = "unix:///nonexistent.sock"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert set(answer.json()["missing"]) == {"broker"}


def test_a_missing_database_is_named(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Down:
        def cursor(self) -> None:
            raise OperationalError

    monkeypatch.setattr(health, "connection", Down())
    assert set(client.get("/readyz").json()["missing"]) == {"database"}


def test_waiting_migrations_are_counted(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda *_: [1, 2])
    assert client.get("/readyz").json()["missing"]["migrations"].startswith("2 migrations")
