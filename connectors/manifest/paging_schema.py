"""The ways in which sources split their listings into pages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from connectors.manifest.connection_schema import Part
from connectors.manifest.templates import checked_path

PathText = Annotated[str, AfterValidator(checked_path)]


class _Style(Part):
    max_pages: int = Field(default=10_000, ge=1)


class NoPaging(_Style):
    """Everything in one answer."""

    style: Literal["none"]


Place = Literal["params", "body", "variables"]


class PageNumber(_Style):
    """Pages by number, until `more` is false; without `more`, until one is empty."""

    style: Literal["page"]
    param: str = "page"
    place: Place = "params"
    first: int = 1
    more: PathText | None = None


class Offset(_Style):
    """Records by position, which moves on by as many as came."""

    style: Literal["offset"]
    param: str = "offset"
    place: Place = "params"
    first: int = 0
    more: PathText | None = None


class BodyCursor(_Style):
    """The answer holds a cursor for the next page; none, or `more` being false, is the end."""

    style: Literal["cursor"]
    next: PathText
    param: str = "cursor"
    place: Place = "params"
    more: PathText | None = None


class NextLink(_Style):
    """The answer holds the address of the next page."""

    style: Literal["next_link"]
    next: PathText
    more: PathText | None = None


class LinkHeader(_Style):
    """The `Link` header names the next page (RFC 8288)."""

    style: Literal["link_header"]


class GraphqlConnection(_Style):
    """A Relay connection: `pageInfo` with `hasNextPage` and `endCursor`."""

    style: Literal["graphql"]
    connection: PathText
    variable: str = "after"


Paging = Annotated[
    NoPaging | PageNumber | Offset | BodyCursor | NextLink | LinkHeader | GraphqlConnection,
    Field(discriminator="style"),
]
