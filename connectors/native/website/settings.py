"""What is asked of who connects a website."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Settings


class WebsiteConfig(Settings):
    """Where to begin, and where to stop."""

    start_urls: list[str] = Field(
        min_length=1, max_length=50, title="Start addresses",
        description="Pages to begin at. Only their hosts are read, with or without www.",
    )  # fmt: skip
    sitemaps: list[str] = Field(
        default=[], max_length=50, title="Sitemaps",
        description="Addresses of sitemaps; empty: those that robots.txt names, or /sitemap.xml.",
    )  # fmt: skip
    use_sitemaps: bool = Field(default=True, title="Read sitemaps")
    path_prefixes: list[str] = Field(
        default=[],
        title="Beginnings of paths",
        description="Only pages below these are read, e.g. /docs/.",
    )
    include: list[str] = Field(
        default=[], title="Only these",
        description="Patterns of paths that become documents, e.g. /blog/* or *.pdf. Other pages are read for "
        "their links.",
    )  # fmt: skip
    exclude: list[str] = Field(
        default=[], title="Not these", description="Patterns of paths that are never asked for."
    )
    max_pages: int = Field(default=1000, ge=1, le=50_000, title="Most pages")
    max_depth: int = Field(
        default=10, ge=0, le=100, title="Most links away", description="From the start addresses."
    )
    requests_per_second: float = Field(default=2.0, gt=0, le=100, title="Requests per second")
    files: bool = Field(
        default=True, title="Files too", description="PDF and other files that pages link to."
    )
