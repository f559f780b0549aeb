"""A connector whose form has every kind of field, a tree of places and a sign-in."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, field_validator

from config.errors import AppError, CredentialsError
from connectors.base import (
    NO_AUTH,
    AuthMethod,
    Browsable,
    Capability,
    Category,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    Node,
    OAuthEndpoints,
    OAuthTokens,
    Settings,
    basic_auth,
    token_auth,
)


class Depth(StrEnum):
    """How far to go."""

    FLAT = "flat"
    WHOLE_TREE = "whole_tree"


class FormConfig(Settings):
    """One field of each kind."""

    site: str = Field(title="站点", description="Its address, e.g. https://<site>.example")
    limit: int = Field(default=10, ge=1, title="Limit")
    comments: bool = Field(default=True, title="Comments too")
    labels: list[str] = Field(default=[], title="Labels")
    depth: Depth = Field(default=Depth.FLAT, title="Depth")
    state: Literal["open", "closed"] | None = Field(default=None, title="State")
    headers: dict[str, str] = Field(default={}, title="Headers")
    places: list[str] = Field(default=[], title="Places")

    @field_validator("labels")
    @classmethod
    def _no_spaces(cls, labels: list[str]) -> list[str]:
        if any(" " in label for label in labels):
            raise ValueError("A label has no spaces")
        return labels


class KeyPair(Settings):
    """A name that is shown and two secrets that are not, one of them optional."""

    user: str = Field(title="User")
    key: SecretStr = Field(title="Key", json_schema_extra={"multiline": True})
    phrase: SecretStr | None = Field(default=None, title="Phrase")


class FormSignIn(OAuthTokens):
    """A sign-in beside which there is a secret for webhooks."""

    hook_secret: SecretStr = Field(default=SecretStr(""), title="Webhook secret")


_ENDPOINTS = OAuthEndpoints("https://form.example/authorize", "https://form.example/token")


class FormConnector(Connector[FormConfig], Browsable):
    """It reaches what a test says."""

    places_field = "places"
    spec = ConnectorSpec(
        kind="form",
        name="表单 <b>Forms</b>",
        description="一切字段。 Every kind of <script>field</script>.",
        category=Category.CUSTOM,
        config=FormConfig,
        auth=(
            NO_AUTH,
            token_auth("Token"),
            AuthMethod("keys", "Key pair", KeyPair, "Made in the <i>profile</i>."),
            basic_auth(),
            AuthMethod("oauth", "Sign in", FormSignIn, oauth=_ENDPOINTS),
        ),
        capabilities=frozenset({Capability.ACCESS_CONTROL, Capability.INCREMENTAL}),
    )
    verdict: ClassVar[str | AppError] = "the <b>form</b> site"
    tree: ClassVar[dict[str, list[Node]]] = {}

    def check(self) -> str:
        verdict: Any = type(self).verdict
        if isinstance(verdict, AppError):
            raise verdict
        return str(verdict)

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        return iter(())

    def browse(self, parent: str) -> list[Node]:
        if parent == "closed":
            raise CredentialsError("This place is <closed>.")
        return type(self).tree.get(parent, [])
