"""What a manifest may say. `docs/connectors.md` explains it field by field.

A `Path` is JMESPath into an answer or a record; a `Template` is Jinja; a `Value` is a template where it holds
braces and a path where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from limits import parse as parse_limit
from pydantic import AfterValidator, Field, model_validator

from connectors.base import Category
from connectors.manifest.connection_schema import Auth, ConfigField, Line, Name, Part, Web
from connectors.manifest.paging_schema import NoPaging, Paging, PathText
from connectors.manifest.templates import (
    checked_template,
    checked_value,
    config_fields,
    is_template,
)

Template = Annotated[str, AfterValidator(checked_template)]
Value = Annotated[str, AfterValidator(checked_value)]


class Endpoint(Part):
    """A request: an address with parameters or a JSON body, or a GraphQL query with variables."""

    base_url: Literal[""] | Web = ""  # of another address, which is asked without credentials
    path: Template = ""
    method: Literal["GET", "POST"] = "GET"
    params: dict[str, Any] = {}
    headers: dict[str, Template] = {}
    body: dict[str, Any] | None = None
    graphql: str = ""
    variables: dict[str, Any] = {}
    empty_on: list[int] = []  # statuses by which the source says that there is nothing, such as 404

    @model_validator(mode="after")
    def _is_one_request(self) -> Self:
        if self.graphql:
            if self.params or self.body is not None:
                raise ValueError("a GraphQL query has variables, no params and no body")
        elif not self.path.startswith("/"):
            raise ValueError("path begins with / (or give a graphql query)")
        elif self.variables:
            raise ValueError("variables belong to a graphql query")
        if self.body is not None and self.method != "POST":
            raise ValueError("a body is sent with method: POST")
        return self


class Detail(Endpoint):
    """A request for one listed record; what it answers takes the record's place."""

    record: PathText = "@"


class Attachment(Endpoint):
    """A request for each record, such as its comments; templates see it as `attached.<name>`."""

    name: Name
    records: PathText = "@"
    pagination: Paging = NoPaging(style="none")
    when: PathText = "@"  # of the record: not asked where this is empty or zero


class Incremental(Part):
    """How a later sync asks for changes only. `since` is in templates, or goes into `param`."""

    field: PathText
    param: str = ""
    format: Literal["iso", "date", "unix", "unix_ms"] = "iso"
    overlap_seconds: int = Field(default=60, ge=0)
    newest_first: bool = False  # no filter: the listing ends where records are older


class FileContent(Part):
    """Content that is downloaded when the record's version is new."""

    url: Value
    filename: Value
    content_type: Value = "''"
    size: Value | None = None


class Mapping(Part):
    """From a record to a document."""

    prefix: Name | None = None  # of the external id; the stream's name when not given
    external_id: Value = "id"
    title: Value
    body: Value | None = None
    file: FileContent | None = None
    content_type: Literal["text/markdown", "text/html", "text/plain"] = "text/markdown"
    url: Value | None = None
    author: Value | None = None
    created_at: Value | None = None
    updated_at: Value | None = None
    version: Value | None = None
    breadcrumbs: list[Value] = []
    metadata: dict[str, Value] = {}
    principals: list[Value] | None = None

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if (self.body is None) == (self.file is None):
            raise ValueError("give a body or a file, not both")
        if self.file and not (self.version or self.updated_at):
            raise ValueError("a file needs a version or updated_at, else it is fetched each time")
        return self


class Stream(Endpoint):
    """One listing and what becomes of its records. Without a mapping it only leads to others."""

    name: Name
    records: PathText = "@"
    pagination: Paging = NoPaging(style="none")
    parent: Name | None = None
    each: Name | None = None  # a list in the configuration: listed once for each value
    item: Detail | None = None
    attach: list[Attachment] = []
    incremental: Incremental | None = None
    limit: int | None = Field(default=None, ge=1)
    complete: bool = False  # a full listing shows everything: what it lacks is gone
    gone_when: PathText | None = None  # of the record: it is deleted or archived
    mapping: Mapping | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.parent and (self.incremental or self.each):
            raise ValueError("a stream with a parent is read with it: no incremental, no each")
        if self.complete and self.limit:
            raise ValueError("a listing with a limit is not complete")
        if self.incremental and self.incremental.param and self.graphql:
            raise ValueError("a GraphQL query has no param: write since into its variables")
        if self.incremental and not self._asks_since(self.incremental):
            raise ValueError(
                "incremental names a param, or a template of the request names since, or it is "
                "newest_first: else every sync reads everything"
            )
        return self

    def _asks_since(self, incremental: Incremental) -> bool:
        asked = (self.path, self.params, self.body, self.variables)
        named = any("since" in text for _, text in templates_in(asked, ""))
        return bool(incremental.param) or incremental.newest_first or named


class Check(Endpoint):
    """A cheap request that proves the connection, and what to tell of its `answer`."""

    message: Template


class SearchMapping(Part):
    """From a result to a hit. `prefix` is that of the stream whose documents these are."""

    prefix: Name
    external_id: Value = "id"
    title: Value
    text: Value
    url: Value | None = None
    author: Value | None = None
    created_at: Value | None = None
    updated_at: Value | None = None
    metadata: dict[str, Value] = {}


class Search(Endpoint):
    """Searching the source itself, with `query` and `limit`."""

    records: PathText = "@"
    mapping: SearchMapping


class Manifest(Part):
    """A whole source."""

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    name: Line
    description: Line
    category: Annotated[Category, Field(strict=False)]  # YAML has its text
    documentation_url: Web
    base_url: Template
    config: list[ConfigField] = []
    auth: list[Auth] = Field(min_length=1)
    headers: dict[str, Template] = {}
    rate_limit: str = ""
    sync_every_minutes: int = Field(default=60, ge=1)
    error: PathText | None = None  # of an answer: what it holds there is why it failed
    check: Check
    streams: list[Stream] = Field(min_length=1)
    search: Search | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.rate_limit:
            parse_limit(self.rate_limit)
        _distinct("config", [field.name for field in self.config])
        _distinct("auth", [method.type for method in self.auth])
        _distinct("streams", [stream.name for stream in self.streams])
        self._check_prefixes()
        self._check_references()
        return self

    def _check_prefixes(self) -> None:
        mapped = [(stream, stream.mapping) for stream in self.streams if stream.mapping]
        shared = {
            mapping.prefix for _, mapping in mapped if mapping.prefix
        }  # the same things, twice
        own = [stream.name for stream, mapping in mapped if not mapping.prefix]
        given = [*sorted(shared), *own]
        _distinct("prefixes", given)
        if self.search and self.search.mapping.prefix not in given:
            raise ValueError(f"search.mapping.prefix: one of {', '.join(given)}")
        named = {mapping.principals is None for _, mapping in mapped}
        if len(named) > 1:
            raise ValueError("principals: map them in every stream or in none")

    def _check_references(self) -> None:
        known, lists = {field.name for field in self.config}, self._lists()
        for place, text in templates_in(self.model_dump(), ""):
            for name in config_fields(checked_template(text)):
                if name not in known:
                    raise ValueError(f"{place}: config has no field {name}")
        before: set[str] = set()
        for stream in self.streams:
            if stream.parent and stream.parent not in before:
                raise ValueError(f"streams[{stream.name}].parent: no stream of that name above it")
            if stream.each and stream.each not in lists:
                raise ValueError(f"streams[{stream.name}].each: config has no list of that name")
            before.add(stream.name)

    def _lists(self) -> set[str]:
        return {field.name for field in self.config if field.type == "list"}


def templates_in(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every template within data, with its place. GraphQL queries are none."""
    if isinstance(value, str):
        if is_template(value):
            yield place, value
    elif isinstance(value, dict):
        for key, part in value.items():
            if key != "graphql":
                yield from templates_in(part, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            label = part.get("name", number) if isinstance(part, dict) else number
            yield from templates_in(part, f"{place}[{label}]")


def _distinct(place: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{place}: {', '.join(twice)} stands there twice")
