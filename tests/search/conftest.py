"""The same tenant, base and workers as for ingestion, and one way to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.access import Actor
from search.request import SearchRequest
from search.services.search import SearchOutcome, search
from tests.knowledge.conftest import base, keeper, workers

__all__ = ["base", "keeper", "workers"]

Ask = Callable[..., SearchOutcome]


@pytest.fixture
def ask(keeper: Actor) -> Ask:
    """Search as the tenant's operator unless another actor is given."""

    def run(query: str, actor: Actor | None = None, **options: Any) -> SearchOutcome:
        return search(actor or keeper, SearchRequest(query, **options))

    return run
