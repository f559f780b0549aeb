"""One model cache for the whole run, kept between runs in the data folder of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from providers.backends.e5.build import build_cache
from providers.backends.e5.embedder import LocalE5Embedder


@pytest.fixture(scope="session")
def cache_root() -> Path:
    root = Path(settings.GROUNDWORK_MODEL_CACHE)
    build_cache(root)
    return root


@pytest.fixture(scope="session")
def embedder(cache_root: Path) -> LocalE5Embedder:
    return LocalE5Embedder(cache_root, threads=1)
