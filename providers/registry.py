"""Which embedding and reranking models this installation has, and the one object of each in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from config.errors import CredentialsError, InvalidInputError
from providers.backends.e5 import MODEL as LOCAL_MODEL
from providers.base import Embedder, Reranker

REMOTE_PREFIX = "openai/"

_BACKENDS = {
    "e5": "providers.backends.e5.embedder.LocalE5Embedder",
    "openai": "providers.backends.openai_compatible.OpenAICompatibleEmbedder",
}
_RERANKERS = {"e5": "providers.backends.e5.reranker.LocalE5Reranker"}
_ENDPOINT = "providers.backends.openai_compatible.EmbeddingEndpoint"

_lock = threading.Lock()


def default_model() -> str:
    """The model of new knowledge bases: the configured endpoint's, else the local one."""
    return _remote_model() or LOCAL_MODEL


def available_models() -> tuple[str, ...]:
    """The names that `embedder_for` takes, the default first."""
    remote = _remote_model()
    return (remote, LOCAL_MODEL) if remote else (LOCAL_MODEL,)


def embedder_for(model: str) -> Embedder:
    """The embedder of a stored model name. Cheap: a model loads at its first use, once per process.

    Raises `CredentialsError` for an endpoint's model that is not the configured one (any more), so that
    a search degrades and an ingestion stops and says why; `InvalidInputError` for any other name.
    """
    if model == LOCAL_MODEL:
        return _local()
    if model == _remote_model():
        return _remote()
    if model.startswith(REMOTE_PREFIX):
        raise CredentialsError(f"The embedding model {model} is not configured on this server.")
    raise InvalidInputError(f"There is no embedding model {model}.")


def reranker() -> Reranker:
    """The reranker. Cheap: it shares the local embedder's model, which loads at its first use."""
    local: Reranker = _create(_RERANKERS["e5"], embedder=_local())
    return local


def warm_up() -> None:
    """Load the local model if new bases use it, so that the first search need not wait for it."""
    if default_model() == LOCAL_MODEL:
        _local().embed_queries(["warm-up"])


def _remote_model() -> str | None:
    name = str(getattr(settings, "GROUNDWORK_EMBED_MODEL", ""))
    configured = name and getattr(settings, "GROUNDWORK_EMBED_BASE_URL", "")
    return REMOTE_PREFIX + name if configured else None


def _local() -> Embedder:
    embedder: Embedder = _create(
        _BACKENDS["e5"],
        cache_root=settings.GROUNDWORK_MODEL_CACHE,
        threads=getattr(settings, "GROUNDWORK_EMBED_THREADS", 1),
    )
    return embedder


def _remote() -> Embedder:
    endpoint: Callable[..., Hashable] = import_string(_ENDPOINT)
    options = endpoint(
        base_url=settings.GROUNDWORK_EMBED_BASE_URL,
        api_key=getattr(settings, "GROUNDWORK_EMBED_API_KEY", ""),
        model=settings.GROUNDWORK_EMBED_MODEL,
        dimensions=settings.GROUNDWORK_EMBED_DIMENSIONS,
        max_tokens=settings.GROUNDWORK_EMBED_MAX_TOKENS,
    )
    embedder: Embedder = _create(_BACKENDS["openai"], endpoint=options, tokenizer=_local())
    return embedder


def _create(path: str, **options: Hashable) -> Any:
    with _lock:
        return _created(path, **options)


@cache
def _created(path: str, **options: Hashable) -> Any:
    backend: Callable[..., Any] = import_string(path)
    return backend(**options)


# The threads of a loaded model do not survive a fork; the child loads its own.
os.register_at_fork(after_in_child=_created.cache_clear)
