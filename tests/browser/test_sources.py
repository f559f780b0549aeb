"""The way of a person from the gallery to what a source has brought, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from tests.browser import test_admin_pages
from tests.browser.test_admin_pages import ThreadWorker, keeper, page, worker  # noqa: F401

pytestmark = test_admin_pages.pytestmark


@pytest.fixture
def handbook(settings: Any, tmp_path: Path, worker: ThreadWorker, monkeypatch: Any) -> Path:  # noqa: F811
    """A folder that may be connected, and a worker for syncs."""
    from connectors import tasks
    from connectors.services.engine import run_sync

    folder = tmp_path / "handbook"
    (folder / "鸟").mkdir(parents=True)
    (folder / "pumps.md").write_text("# Pumps\n\nThe pump P7 needs oil every week.\n")
    (folder / "鸟" / "鹭.md").write_text("# 鹭\n\n苍鹭涉水。\n")
    settings.GROUNDWORK_LOCAL_FOLDERS = [str(folder)]
    monkeypatch.setattr(tasks.sync_task, "delay", worker._queue(run_sync))
    return folder


def test_a_folder_is_connected_synced_and_searched(
    page: Any,  # noqa: F811
    live_server: Any,
    handbook: Path,
) -> None:
    page.goto(live_server.url + reverse("admin:connectors_connection_changelist"))
    page.click("text=Connector gallery >> nth=-1")
    page.fill("#gallery-search [name=q]", "mounted share")
    page.wait_for_function("document.querySelectorAll('.gallery-card:not([hidden])').length === 1")
    page.click(".gallery-card:visible >> text=Connect")

    assert not page.is_visible("[name='schedule.cron']")
    page.select_option("[name=schedule]", "cron")
    assert page.is_visible("[name='schedule.cron']")
    assert not page.is_visible("[name='schedule.minutes']")
    page.select_option("[name=schedule]", "off")
    page.fill("[name=name]", "Handbook")
    page.fill("[name='config.path']", str(handbook / "missing"))
    page.click("#connection-form button[type=submit]")

    page.wait_for_selector("text=Never synced.")
    page.click("form[data-check] button")
    page.wait_for_selector("#check-verdict.kb-error:has-text('is not there')")
    page.click(".kb-actions >> text=Settings")
    page.fill("[name='config.path']", str(handbook))
    page.click("#connection-form button[type=submit]")
    page.wait_for_selector("text=The settings were saved.")
    page.click("form[data-check] button")
    page.wait_for_selector("#check-verdict:has-text('Reached')")

    page.click(".kb-actions >> text=Browse")
    page.click("[data-tree] >> text=Open")
    page.wait_for_selector("text=Nothing lies below.")
    page.click("text=Back")
    page.click("text=Sync now")
    page.wait_for_selector("#health:has-text('Succeeded'):not([data-changing])")
    assert "2 new" in page.inner_text("#health")

    page.click("#health dd a >> nth=0")
    page.click("text=pumps")
    assert "Last seen at the source" in page.inner_text(".kb-panel >> nth=0")
    page.goto(live_server.url + reverse("admin:search_test") + "?query=苍鹭")
    assert "苍鹭" in page.inner_text(".kb-result >> nth=0")
