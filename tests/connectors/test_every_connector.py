"""What holds for every connector, native or manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from limits import parse
from pydantic import SecretStr

from connectors.base import Browsable, Category, Connector
from connectors.registry import connector_class, kinds

ASKED_FOR = {
    "custom-mcp", "git-repo", "x", "notion", "google", "web-search", "hackernews", "slack", "langsmith", "folder",
    "website", "rss", "s3", "imap", "sql", "webdav", "github", "jira", "confluence", "google-drive", "linear", "push",
}  # fmt: skip


@pytest.fixture(params=kinds())
def connector(request: Any) -> type[Connector[Any]]:
    return connector_class(request.param)


def test_what_was_asked_for_is_there() -> None:
    assert set(kinds()) >= ASKED_FOR


def test_the_gallery_can_show_it(connector: type[Connector[Any]]) -> None:
    spec = connector.spec
    assert connector_class(spec.kind) is connector
    assert spec.name.strip()
    assert spec.description.endswith(".")
    assert spec.category in Category
    assert connector.capabilities() >= spec.capabilities


def test_its_form_can_be_made(connector: type[Connector[Any]]) -> None:
    spec = connector.spec
    models = [spec.config, *(method.credentials for method in spec.auth)]
    for model in models:
        json.dumps(model.model_json_schema())
    for name, field in spec.config.model_fields.items():
        assert field.title, f"{name} has no title"
        assert field.annotation is not SecretStr, f"{name} is a credential, not a setting"
    names = [method.name for method in spec.auth]
    assert len(names) == len(set(names)) > 0


def test_every_way_to_authenticate_can_be_used(connector: type[Connector[Any]]) -> None:
    for method in connector.spec.auth:
        assert method.label.strip()
        if method.oauth is not None:
            assert method.oauth.token_url.startswith(("https://", "{"))
            assert "access_token" in method.credentials.model_fields


def test_its_pace_and_schedule_are_understood(connector: type[Connector[Any]]) -> None:
    spec = connector.spec
    if spec.rate_limit:
        assert parse(spec.rate_limit).amount > 0
    assert 0 <= spec.sync_every_minutes <= 24 * 60


def test_chosen_places_have_a_field(connector: type[Connector[Any]]) -> None:
    if issubclass(connector, Browsable) and connector.places_field:
        assert connector.spec.config.model_fields[connector.places_field].annotation == list[str]
