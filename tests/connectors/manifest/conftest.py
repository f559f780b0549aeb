"""A source on loopback for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.connectors.manifest.site import Site, served
from tests.connectors.vendor import HOST, vendor

__all__ = ["vendor"]


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    """An empty one; its host is open to requests."""
    settings.GROUNDWORK_PRIVATE_HOSTS = [HOST]
    running = Site()
    with served(running) as url:
        running.url = url
        yield running
