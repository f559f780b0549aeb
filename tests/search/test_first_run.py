"""The first start: everything once, nothing lost when it is cut off, samples that answer."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from accounts.access import actor_for_key
from accounts.models import Tenant, User
from accounts.services.api_keys import find_valid_key
from config.embedded.paths import DataFolder
from knowledge.models import Document
from search.request import SearchRequest
from search.services import first_run
from search.services.first_run import FirstRun, ensure_first_run, sample_files
from search.services.search import search
from tests.factories import make_tenant
from tests.workers import Workers

SAMPLE = Path(__file__).resolve().parents[2] / "sample"


@pytest.fixture(autouse=True)
def file(settings: Any, tmp_path: Path, db: None, workers: Workers) -> Path:
    """Where the first start writes what it made."""
    settings.GROUNDWORK_DATA = DataFolder(tmp_path / "data")
    first: Path = settings.GROUNDWORK_DATA.first_run
    return first


def test_an_empty_installation_is_set_up_once(file: Path) -> None:
    made = ensure_first_run()
    assert made is not None
    assert json.loads(file.read_text()) == {
        "url": made.url,
        "email": made.email,
        "password": made.password,
        "tenant": made.tenant,
        "api_key": made.api_key,
        "knowledge_base": "sample",
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert User.objects.get().check_password(made.password)
    assert find_valid_key(made.api_key) is not None
    assert Document.unscoped.count() == len(sample_files())
    assert ensure_first_run() is None
    assert Tenant.objects.count() == 1


def test_an_installation_with_tenants_is_left_alone(file: Path) -> None:
    make_tenant()
    assert ensure_first_run() is None
    assert not file.exists()
    assert not User.objects.exists()


def test_a_crash_after_the_commit_loses_no_password(file: Path) -> None:
    made = ensure_first_run()
    file.rename(file.with_name("first-run.json.new"))
    assert ensure_first_run() == made
    assert file.exists()


def test_a_crash_before_the_commit_begins_anew(file: Path) -> None:
    file.parent.mkdir()
    stale = FirstRun("u", "e", "p", "t", "gw_000000000000_never", "sample")
    file.with_name("first-run.json.new").write_text(json.dumps(asdict(stale)))
    made = ensure_first_run()
    assert made is not None
    assert made.api_key != stale.api_key
    assert json.loads(file.read_text())["api_key"] == made.api_key


def test_a_half_written_draft_of_another_database_is_not_believed(file: Path) -> None:
    make_tenant()
    file.parent.mkdir()
    file.with_name("first-run.json.new").write_text('{"url": "http')
    assert ensure_first_run() is None
    assert not file.exists()


def test_a_failure_leaves_nothing_behind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(first_run, "_create_sample_base", fail)
    with pytest.raises(OSError, match="disk full"):
        ensure_first_run()
    assert not Tenant.objects.exists()
    assert not User.objects.exists()
    assert not file.exists()


@pytest.mark.slow
def test_the_sample_answers_its_questions(
    workers: Workers,
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[Any]],
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        made = ensure_first_run()
    workers.drain()
    assert made is not None
    key = find_valid_key(made.api_key)
    assert key is not None
    assert {status for (status,) in Document.unscoped.values_list("status")} == {"ready"}
    for row in json.loads((SAMPLE / "questions.json").read_text()):
        hits = search(actor_for_key(key), SearchRequest(query=row["question"], limit=3)).hits
        found = [h.chunk.document.filename for h in hits if holds(h.chunk.content, row["passage"])]
        assert found[:1] == [row["file"]], row["question"]


def holds(content: str, passage: str) -> bool:
    """Whether a passage is in a chunk, however its lines are broken."""
    return "".join(passage.split()) in "".join(content.split())


def test_every_passage_is_in_its_file() -> None:
    for row in json.loads((SAMPLE / "questions.json").read_text()):
        assert row["passage"] in (SAMPLE / row["file"]).read_text()
