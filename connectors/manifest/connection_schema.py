"""How a source is connected, as a manifest says it: the form, and the ways to authenticate."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Web = Annotated[str, Field(pattern=r"^https?://")]


class Part(BaseModel):
    """Base of everything in a manifest: nothing unknown, no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ConfigField(Part):
    """A field of the form by which a person connects the source."""

    name: Name
    title: Line
    description: str = ""
    type: Literal["text", "integer", "boolean", "list"] = "text"
    required: bool = False
    default: str | int | bool | list[str] | None = None
    pattern: str = ""
    choices: list[str] = []

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        fits = {"text": str, "integer": int, "boolean": bool, "list": list}[self.type]
        if self.default is not None and type(self.default) is not fits:
            raise ValueError(f"the default is no {self.type}")
        given = self.default if isinstance(self.default, list) else [self.default]
        if self.choices and self.default is not None and not set(given) <= set(self.choices):
            raise ValueError("the default is none of the choices")
        return self


class TokenAuth(Part):
    """A token in a header."""

    type: Literal["token"]
    label: Line = "Access token"
    hint: str = ""
    header: Line = "Authorization"
    scheme: str = "Bearer"


class ApiKeyAuth(Part):
    """A key in a header or in the query; exactly one of both."""

    type: Literal["api_key"]
    label: Line = "API key"
    hint: str = ""
    header: str = ""
    param: str = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.header) == bool(self.param):
            raise ValueError("name a header or a param for the key, not both")
        return self


class BasicAuth(Part):
    """HTTP Basic. `username_suffix` is put behind the name, as Zendesk wants `/token`."""

    type: Literal["basic"]
    label: Line = "User name and password"
    hint: str = ""
    username_suffix: str = ""


class OAuth(Part):
    """A sign-in at the source. Addresses may name configuration fields in single braces."""

    type: Literal["oauth"]
    label: Line = "Sign in"
    hint: str = ""
    authorize_url: Web
    token_url: Web
    scopes: list[str] = []
    scope_separator: str = " "
    pkce: bool = True
    basic_client: bool = True
    client_credentials: bool = False
    extra: dict[str, str] = {}


class NoAuth(Part):
    """Open to everyone."""

    type: Literal["none"]


Auth = Annotated[TokenAuth | ApiKeyAuth | BasicAuth | OAuth | NoAuth, Field(discriminator="type")]
