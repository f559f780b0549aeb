"""From a stored model name to the embedder."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings
from django.utils.module_loading import import_string

from config.errors import CredentialsError, InvalidInputError
from providers import registry
from providers.base import Embedder, Reranker
from providers.registry import available_models, default_model, embedder_for, reranker

LOCAL = {"GROUNDWORK_EMBED_BASE_URL": "", "GROUNDWORK_EMBED_MODEL": ""}
REMOTE = {
    "GROUNDWORK_EMBED_BASE_URL": "https://embeddings.test/v1",
    "GROUNDWORK_EMBED_MODEL": "big",
    "GROUNDWORK_EMBED_API_KEY": "k",
    "GROUNDWORK_EMBED_DIMENSIONS": 768,
    "GROUNDWORK_EMBED_MAX_TOKENS": 256,
}


def test_every_backend_of_the_tables_keeps_its_contract() -> None:
    for path in registry._BACKENDS.values():
        assert issubclass(import_string(path), Embedder)
    for path in registry._RERANKERS.values():
        assert issubclass(import_string(path), Reranker)


@override_settings(**LOCAL)
def test_without_an_endpoint_the_local_model_is_the_only_one() -> None:
    assert default_model() == "multilingual-e5-small"
    assert available_models() == ("multilingual-e5-small",)


@override_settings(**LOCAL)
def test_the_local_model_is_one_object(tmp_path: Path) -> None:
    with override_settings(GROUNDWORK_MODEL_CACHE=tmp_path):
        embedder = embedder_for("multilingual-e5-small")
        assert embedder is embedder_for("multilingual-e5-small")
    assert (embedder.model, embedder.dimensions) == ("multilingual-e5-small", 384)
    assert not list(tmp_path.iterdir())  # nothing is built or loaded yet


@pytest.mark.parametrize("options", [LOCAL, REMOTE])
def test_the_reranker_is_one_object_over_the_local_model(
    tmp_path: Path, options: dict[str, object]
) -> None:
    with override_settings(GROUNDWORK_MODEL_CACHE=tmp_path, **options):
        local = embedder_for("multilingual-e5-small")
        assert reranker() is reranker()
        assert vars(reranker())["_network"] is vars(local)["network"]
    assert not list(tmp_path.iterdir())  # nothing is built or loaded yet


@override_settings(**REMOTE)
def test_a_configured_endpoint_becomes_the_default() -> None:
    assert default_model() == "openai/big"
    assert available_models() == ("openai/big", "multilingual-e5-small")
    embedder = embedder_for(default_model())
    assert embedder is embedder_for("openai/big")
    assert (embedder.model, embedder.dimensions, embedder.max_tokens) == ("openai/big", 768, 256)


@override_settings(**REMOTE)
def test_changed_settings_give_another_embedder() -> None:
    first = embedder_for("openai/big")
    with override_settings(GROUNDWORK_EMBED_DIMENSIONS=1024):
        assert embedder_for("openai/big").dimensions == 1024
    assert embedder_for("openai/big") is first


@override_settings(**REMOTE)
@pytest.mark.parametrize("model", ["openai/other", "openai/"])
def test_a_model_that_is_not_configured_asks_for_configuration(model: str) -> None:
    with pytest.raises(CredentialsError, match="not configured"):
        embedder_for(model)


@pytest.mark.parametrize("model", ["", "bert", "OPENAI/big"])
def test_an_unknown_model_is_invalid_input(model: str) -> None:
    with pytest.raises(InvalidInputError):
        embedder_for(model)
