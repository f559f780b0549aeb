"""The pages and files of a website, by its sitemaps and its links.

Each run goes through the whole site, politely; pages that have not changed since are answered by the server
without their content. The cursor names the crawl that is going on, so that an interrupted one is continued;
after its end it is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import uuid4

from django.utils import timezone

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    NO_AUTH,
    Capability,
    Category,
    Connector,
    ConnectorSpec,
    Cursor,
    Deletion,
    Event,
    Refetch,
    basic_auth,
    token_auth,
)
from connectors.native.website.addresses import Site, one_spelling
from connectors.native.website.crawl import ANSWERS, Crawl
from connectors.native.website.memory import opened_memory
from connectors.native.website.pages import charset_of, read_page
from connectors.native.website.robots import Robots
from connectors.native.website.settings import WebsiteConfig

_LONGEST_BREAK = timedelta(days=1)  # after which a crawl is begun anew


class WebsiteConnector(Connector[WebsiteConfig], Refetch):
    """A page is known by its address in one spelling."""

    spec = ConnectorSpec(
        kind="website",
        name="Website",
        description="Pages and files of a website, found by sitemaps and links.",
        category=Category.WEB,
        config=WebsiteConfig,
        auth=(NO_AUTH, basic_auth(), token_auth()),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES}),
        sync_every_minutes=24 * 60,
    )

    def check(self) -> str:
        """The title of the first page, or its address."""
        self._validate()
        url = one_spelling(self.config.start_urls[0])
        client = self.context.client()
        if not Robots(url, partial(client.request, "GET", expected=ANSWERS)).allows(url):
            raise RejectedError(f"The robots.txt of the site does not allow to read {url}.")
        response = client.request("GET", url)
        place = one_spelling(str(response.url))
        if not Site.of([url], []).has_host(place):
            raise InvalidInputError(f"{url} leads to {place}. If that is the site, begin there.")
        page = read_page(place, response.content, charset_of(response), "")
        return f"{page.title}: {place}" if page.title else place

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Every page, those of an interrupted crawl without asking for them again."""
        self._validate()
        position = cursor if _is_going_on(cursor) else _new_position()
        with opened_memory(self.context.cache) as memory:
            crawl = Crawl(self.config, self.context, memory, position["crawl"])
            yield from crawl.events(position)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single pages."""
        with opened_memory(self.context.cache) as memory:
            crawl = Crawl(self.config, self.context, memory, uuid4().hex)
            for url in external_ids:
                event = crawl.look(url).event if crawl.may_ask(url) else None
                yield event or Deletion(url)

    def _validate(self) -> None:
        for url in [*self.config.start_urls, *self.config.sitemaps]:
            if not one_spelling(url):
                raise InvalidInputError(
                    f"{url[:200]!r} is no address of a page. It begins with https:// or http://."
                )


def _new_position() -> dict[str, str]:
    return {"crawl": uuid4().hex, "since": timezone.now().isoformat()}


def _is_going_on(cursor: Cursor) -> bool:
    if not cursor.get("crawl"):
        return False
    return timezone.now() - datetime.fromisoformat(cursor["since"]) < _LONGEST_BREAK
