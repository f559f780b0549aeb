"""The way of a person through the admin, in a real browser."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.urls import reverse
from playwright.sync_api import sync_playwright

from accounts.access import actor_for_member
from accounts.models import Membership, Role
from accounts.tenancy import tenant_scope
from knowledge.services import ingest
from knowledge.services.knowledge_bases import create_knowledge_base
from tests.factories import PASSWORD, make_membership, make_tenant

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 30_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.allow_hosts(["127.0.0.1", "localhost"]),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium"),
]


class ThreadWorker:
    """Works off queued tasks beside the test, as a worker process would."""

    def __init__(self, monkeypatch: Any) -> None:
        from knowledge import tasks

        self._calls: list[tuple[Any, ...]] = []
        self._stopped = threading.Event()
        monkeypatch.setattr(
            tasks.process_document_task, "delay", self._queue(ingest.process_document)
        )
        monkeypatch.setattr(tasks.embed_slice_task, "delay", self._queue(ingest.embed_slice))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _queue(self, service: Any) -> Any:
        return lambda tenant_id, document_id, *rest: self._calls.append(
            (service, UUID(tenant_id), UUID(document_id), *rest)
        )

    def _run(self) -> None:
        from django.db import connections

        while not self._stopped.is_set() or self._calls:
            if self._calls:
                service, *arguments = self._calls.pop(0)
                service(*arguments)
            time.sleep(0.02)
        connections.close_all()

    def stop(self) -> None:
        """Finish what is queued."""
        self._stopped.set()
        self._thread.join(timeout=60)


@pytest.fixture
def worker(monkeypatch: Any) -> Iterator[ThreadWorker]:
    made = ThreadWorker(monkeypatch)
    yield made
    made.stop()


@pytest.fixture
def keeper(settings: Any, tmp_path: Path) -> Membership:
    """An editor of a tenant with one empty base."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "originals")},
        },
    }
    member = make_membership(tenant=make_tenant(), role=Role.OWNER, email="keeper@acme.example")
    with tenant_scope(member.tenant_id):
        create_knowledge_base(actor=actor_for_member(member), name="Machines")
    return member


@pytest.fixture
def page(live_server: Any, keeper: Membership) -> Iterator[Any]:
    """A browser in which the keeper is logged in."""
    with (
        sync_playwright() as driver,
        contextlib.closing(
            driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        ) as browser,
    ):
        opened = browser.new_page()
        opened.set_default_timeout(PATIENCE_MS)
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.goto(live_server.url + reverse("admin:index"))
        opened.fill("[name=login]", keeper.user.email)
        opened.fill("[name=password]", PASSWORD)
        opened.press("[name=password]", "Enter")
        opened.wait_for_selector("#first-steps")
        yield opened
        assert faults == []


def test_upload_search_and_correct(
    page: Any, live_server: Any, worker: ThreadWorker, tmp_path: Path
) -> None:
    good, bad = tmp_path / "pumps.md", tmp_path / "broken.pdf"
    good.write_text(
        "# Pumps\n\nThe pump P7 needs oil every week.\n\n# Valves\n\nClose valve V3 first.\n"
    )
    bad.write_bytes(b"%PDF-1.7 and nothing more")

    page.goto(live_server.url + reverse("admin:knowledge_document_upload"))
    page.set_input_files("input[type=file]", [str(good), str(bad)])
    page.wait_for_selector(".kb-upload:has-text('pumps.md') >> text=Ready")
    page.wait_for_selector(".kb-upload:has-text('broken.pdf') >> text=Failed")

    page.goto(live_server.url + reverse("admin:knowledge_document_changelist"))
    assert "broken.pdf" in page.inner_text("tr:has-text('Failed')")

    page.goto(live_server.url + reverse("admin:search_test"))
    page.fill("[name=query]", "pump oil")
    page.press("[name=query]", "Enter")
    assert "pump" in page.inner_text(".kb-result mark >> nth=0").lower()

    page.click(".kb-result h3 a >> nth=0")
    assert "pump P7" in page.inner_text("#document-text mark")
    page.click(".kb-chunk:last-child .kb-passage")
    assert "valve V3" in page.inner_text("#document-text mark")

    page.click(".kb-chunk.kb-chosen >> text=Edit")
    page.fill("[name=content]", "Close valve V9 first.")
    page.click("button[name=_save]")
    page.wait_for_selector("text=was changed successfully")
    page.goto(live_server.url + reverse("admin:search_test") + "?query=V9&strategy=lexical")
    assert "V9" in page.inner_text(".kb-result mark")


def test_golden_queries_and_why_not(
    page: Any, live_server: Any, worker: ThreadWorker, tmp_path: Path
) -> None:
    notes = tmp_path / "pumps.md"
    notes.write_text("# Pumps\n\nThe pump P7 needs oil every week.\n")
    page.goto(live_server.url + reverse("admin:search_goldenquery_changelist"))
    assert "No golden queries yet" in page.inner_text(".kb-empty")

    page.goto(live_server.url + reverse("admin:knowledge_document_upload"))
    page.set_input_files("input[type=file]", str(notes))
    page.wait_for_selector(".kb-upload:has-text('pumps.md') >> text=Ready")

    page.goto(live_server.url + reverse("admin:search_test") + "?query=pump+oil")
    page.click("text=Save as golden")
    page.wait_for_selector("text=Saved as a golden query of Machines. Found at 1.")
    assert page.inner_text(".kb-result .kb-ok >> nth=0") == "golden"

    page.click(".kb-result >> text=Chunk #1")
    page.fill("[name=content]", "Nothing is said here any more.")
    page.click("button[name=_save]")
    page.wait_for_selector("text=was changed successfully")
    page.goto(live_server.url + reverse("admin:search_goldenquery_changelist"))
    page.click("text=Run now")
    page.wait_for_selector("text=0 of 1 golden queries of Machines are green.")
    assert "chunk #1 was edited" in page.inner_text(".kb-panel")
    page.click("text=Last run")
    page.wait_for_selector(
        "text=A chunk of a wanted document was edited by hand.", state="detached"
    )
    assert "Turned red" in page.inner_text(".kb-lines")

    page.goto(live_server.url + reverse("admin:search_test") + "?query=wine&strategy=lexical")
    page.click("text=Something missing?")
    page.fill("[name=missed]", "pumps.md")
    page.press("[name=missed]", "Enter")
    page.wait_for_selector("#why-not")
    assert "Not in the passage: wine." in page.inner_text("#why-not")
