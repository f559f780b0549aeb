"""The contract of a connector: what it declares, what it is given, what it yields.

A native connector is one file in `connectors/native/` with one subclass of `Connector`, and a line in
`connectors/registry.py`. It reads a source and yields events; it knows nothing of the database. Everything
else is the engine's: storing, comparing, deleting, retrying, scheduling, limits, credentials.

What one can do beyond listing is said by further bases: `LiveSearch`, `Memberships`, `Browsable`,
`WebhookReceiver`, `Refetch`.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from requests.auth import AuthBase, HTTPBasicAuth

from config.http import HeaderAuth, HttpClient

Cursor = Mapping[str, Any]


class Settings(BaseModel):
    """Base of configuration and credential models. Field titles and descriptions become the form."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and "\x00" in text for text in texts):
            raise ValueError("Must not hold a NUL character")
        return value


class Category(StrEnum):
    """The shelves of the gallery."""

    FILES = "Files"
    DOCUMENTS = "Wikis and documents"
    MESSAGES = "Chat and mail"
    WORK = "Tickets and projects"
    CODE = "Code and engineering"
    CUSTOMERS = "Customers and support"
    WEB = "Web and news"
    DATABASES = "Databases"
    CUSTOM = "Your own"


class Capability(StrEnum):
    """What a connector can do, as the gallery shows it."""

    INCREMENTAL = "incremental"  # a later run asks for changes only
    DELETIONS = "deletions"  # what is gone at the source is noticed
    FILES = "files"
    ACCESS_CONTROL = "access_control"  # records say who may read them
    LIVE_SEARCH = "live_search"
    BROWSE = "browse"
    WEBHOOKS = "webhooks"
    AGENTIC_DISCOVERY = "agentic_discovery"  # the source offers tools that an agent can explore


# --- credentials -------------------------------------------------------------------------------


class NoCredentials(Settings):
    """Nothing to prove."""


class OAuthTokens(Settings):
    """What an OAuth sign-in gave; kept up to date by the engine. Only the access token concerns connectors."""

    access_token: SecretStr = SecretStr("")
    refresh_token: SecretStr = SecretStr("")
    expires_at: float | None = None  # Unix time
    client_id: str = ""  # the tenant's own client; empty: the installation's
    client_secret: SecretStr = SecretStr("")


@dataclass(frozen=True, slots=True)
class OAuthEndpoints:
    """Where one signs in. Addresses may name configuration fields in braces."""

    authorize_url: str
    token_url: str
    scopes: tuple[str, ...] = ()
    scope_separator: str = " "
    pkce: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)  # e.g. access_type=offline
    client_credentials: bool = False  # no person signs in; client id and secret suffice
    basic_client: bool = True  # the client proves itself by HTTP Basic rather than in the body

    @property
    def asked_scope(self) -> dict[str, str]:
        """The parameter `scope` of a request; none where nothing is named."""
        return {"scope": self.scope_separator.join(self.scopes)} if self.scopes else {}


@dataclass(frozen=True, slots=True)
class AuthMethod:
    """One way to prove who connects."""

    name: str  # none, token, basic, api_key, oauth …
    label: str
    credentials: type[Settings]
    hint: str = ""
    auth: Callable[[Any], AuthBase] | None = None  # how requests prove it, given the credentials
    oauth: OAuthEndpoints | None = None  # then the engine proves it, and renews the tokens


class TokenCredentials(Settings):
    """A token that is sent as it is."""

    token: SecretStr = Field(title="Token")


class BasicCredentials(Settings):
    """A user name and a password."""

    username: str = Field(title="User name")
    password: SecretStr = Field(title="Password")


NO_AUTH = AuthMethod("none", "No credentials", NoCredentials)


def token_auth(
    label: str = "Access token",
    *,
    hint: str = "",
    header: str = "Authorization",
    scheme: str = "Bearer",
) -> AuthMethod:
    """A token in a header, after a word such as Bearer if any."""

    def auth(credentials: TokenCredentials) -> AuthBase:
        return HeaderAuth(header, f"{scheme} {credentials.token.get_secret_value()}".strip())

    return AuthMethod("token", label, TokenCredentials, hint, auth)


def basic_auth(label: str = "User name and password", *, hint: str = "") -> AuthMethod:
    """HTTP Basic."""

    def auth(credentials: BasicCredentials) -> AuthBase:
        return HTTPBasicAuth(
            credentials.username.encode(), credentials.password.get_secret_value().encode()
        )

    return AuthMethod("basic", label, BasicCredentials, hint, auth)


def oauth(endpoints: OAuthEndpoints, label: str = "Sign in", *, hint: str = "") -> AuthMethod:
    """A sign-in at the source, or with a client of one's own."""
    return AuthMethod("oauth", label, OAuthTokens, hint, oauth=endpoints)


# --- what a connector declares and is given ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """What is known of a connector without running it."""

    kind: str
    name: str
    description: str
    category: Category
    config: type[Settings]
    auth: tuple[AuthMethod, ...] = (NO_AUTH,)
    capabilities: frozenset[Capability] = frozenset()
    backend: str = "native"
    documentation_url: str = ""
    rate_limit: str = (
        ""  # as `limits` has it, e.g. "50/minute"; shared by all workers, per connection
    )
    sync_every_minutes: int = 60  # a sensible default

    def method(self, name: str) -> AuthMethod:
        """A way to authenticate by name. Raises `KeyError`."""
        return {method.name: method for method in self.auth}[name]


@dataclass(frozen=True, slots=True)
class Context:
    """What the framework gives a connector besides configuration and credentials.

    `client` makes an HTTP client with the connection's rate limit; `pause` sleeps and ends the work when the
    run is cancelled: call it, or the client, in every loop that may last. `max_bytes` bounds a file. `cache`
    is a folder of the connection's own, to be made when needed; what lies there may be gone in the next run.
    """

    client: Callable[..., HttpClient]
    pause: Callable[[float], None]
    log: logging.Logger
    max_bytes: int
    auth: AuthBase | None = None  # proves who connects; `client` uses it unless given another
    cache: Path = Path(os.devnull, "cache")  # where there is none, nothing can be made


# --- what a connector yields ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """Content that is at hand. Markdown keeps headings and tables."""

    text: str
    content_type: str = "text/markdown"


@dataclass(frozen=True, slots=True)
class File:
    """Content that is fetched only when the record's version is new. `open` raises `RemoteError`."""

    open: Callable[[], AbstractContextManager[BinaryIO]]
    filename: str
    content_type: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One thing at the source that becomes one document.

    `version` is an etag, revision or modification time: while it stays, a `File` is not fetched again.
    `principals` None means that the source says nothing about who may read: the base's setting holds, or
    nobody may where the connector promises access control. Groups are named as in `Membership`.
    """

    external_id: str
    title: str
    body: Text | File
    version: str = ""
    scope: str = ""
    url: str = ""
    author: str = ""
    breadcrumbs: Sequence[str] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    principals: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """The source says that a thing is gone."""

    external_id: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A thing that is there but could not be read. It is kept as it was and tried again later."""

    external_id: str
    message: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything yielded so far is covered by this position, which is JSON; a run may resume here."""

    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything in the scope has been yielded in this run: what was not is gone at the source.

    Not to be yielded when a part of the listing failed.
    """

    scope: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning for the run as a whole."""

    message: str


Event = Record | Deletion | Failure | Checkpoint | Complete | Notice


@dataclass(frozen=True, slots=True)
class Membership:
    """Someone or a group inside a group; as principals: `user:ana@example.com`, `group:eng`."""

    group: str
    member: str


@dataclass(frozen=True, slots=True)
class LiveHit:
    """A result of searching the source itself."""

    external_id: str
    title: str
    text: str
    url: str = ""
    author: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """A place at the source that can be chosen for syncing."""

    id: str
    title: str
    has_children: bool = False
    selectable: bool = True


# --- the connector -------------------------------------------------------------------------------

ConfigT = TypeVar("ConfigT", bound=Settings)


class Connector(ABC, Generic[ConfigT]):
    """One source of one tenant, for the time of one run."""

    spec: ClassVar[ConnectorSpec]
    # Whether whoever fills the source names groups as the tenant does; else they are groups of the source.
    names_are_the_tenants: ClassVar[bool] = False

    def __init__(self, config: ConfigT, credentials: Settings, context: Context) -> None:
        self.config = config
        self.credentials = credentials
        self.context = context

    @abstractmethod
    def check(self) -> str:
        """Try the connection cheaply. Returns who or what was reached, for people; raises `RemoteError`
        or `InvalidInputError` saying what to mend."""

    @abstractmethod
    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """What there is (empty cursor) or what has changed since the cursor, with a `Checkpoint` after each
        page or so. Raises `RemoteError` when the run cannot go on; a single bad item is a `Failure`."""

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        """What is declared, and what further bases mean."""
        derived = {
            capability
            for base, capability in (
                (LiveSearch, Capability.LIVE_SEARCH),
                (Browsable, Capability.BROWSE),
                (WebhookReceiver, Capability.WEBHOOKS),
            )
            if base in cls.__mro__
        }
        return cls.spec.capabilities | derived


class LiveSearch(ABC):
    """Can be searched at the source."""

    @abstractmethod
    def search(self, query: str, limit: int) -> list[LiveHit]:
        """The source's own results, best first."""


class Memberships(ABC):
    """Knows who is in which group."""

    @abstractmethod
    def memberships(self) -> Iterator[Membership]:
        """All of them. Raises `RemoteError` when they cannot be read completely."""


class Browsable(ABC):
    """Can show its places, for a person to choose among. `places_field` names the list in the configuration
    that takes the ids of those chosen; empty: they are to look at."""

    places_field: ClassVar[str] = ""

    @abstractmethod
    def browse(self, parent: str) -> list[Node]:
        """What lies in a place; the roots for an empty id."""


class Refetch(ABC):
    """Can read single things anew, which makes retrying cheap."""

    @abstractmethod
    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """A `Record`, `Deletion` or `Failure` for each."""


class WebhookReceiver(ABC):
    """Is told of changes by the source."""

    @abstractmethod
    def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """Check the signature. Raises `ForbiddenError` when it is wrong."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """`sync` asks for an incremental run; `body` is answered to the source, e.g. a challenge."""

    sync: bool = True
    body: str = ""
