"""What a host asks of crawlers, and the pages it names itself."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import requests
from lxml import etree
from protego import Protego

from config.errors import RejectedError
from connectors.native.website.addresses import one_spelling

AGENT = "Groundwork"
_LONGEST_DELAY_S = 60.0
_MOST_SITEMAPS = 200
_MOST_BYTES = 64 * 1024 * 1024  # of a sitemap that is packed
Ask = Callable[[str], requests.Response]


class Robots:
    """The rules of one host (RFC 9309). `ask` answers with what a server says, 4xx included."""

    def __init__(self, url: str, ask: Ask) -> None:
        parts = urlsplit(url)
        self.root = f"{parts.scheme}://{parts.netloc}"
        response = ask(f"{self.root}/robots.txt")
        # A host without rules, or whose rules nobody may read, has none.
        text = response.content.decode(errors="replace") if response.status_code == 200 else ""
        self._rules = Protego.parse(text)

    def allows(self, url: str) -> bool:
        """Whether a page may be read."""
        return bool(self._rules.can_fetch(url, AGENT))

    @property
    def delay_s(self) -> float:
        """Seconds between two requests that the host asks for."""
        rate = self._rules.request_rate(AGENT)
        paced = rate.seconds / rate.requests if rate and rate.requests else 0.0
        return min(max(self._rules.crawl_delay(AGENT) or 0.0, paced), _LONGEST_DELAY_S)

    @property
    def sitemaps(self) -> list[str]:
        """Those that the host names, or the usual one."""
        return [one_spelling(url, self.root) for url in self._rules.sitemaps] or [
            f"{self.root}/sitemap.xml"
        ]


def pages_of_sitemaps(urls: list[str], ask: Ask, most: int) -> Iterator[str]:
    """The pages that sitemaps name, those of an index included. One that is not there names none."""
    waiting, seen, count = list(urls), set(urls), 0
    while waiting and len(seen) <= _MOST_SITEMAPS:
        response = ask(waiting.pop(0))
        if response.status_code != 200:
            continue
        for kind, url in _entries(response.content):
            found = one_spelling(url, str(response.url))
            if kind == "sitemap" and found and found not in seen:
                seen.add(found)
                waiting.append(found)
            elif kind == "url" and found:
                count += 1
                if count > most:
                    return
                yield found


def _entries(content: bytes) -> Iterator[tuple[str, str]]:
    """`url` or `sitemap`, and the address. A text file has an address a line."""
    data = _unpacked(content)
    if not data.lstrip().startswith(b"<"):
        lines = data.decode(errors="replace").splitlines()
        yield from (("url", line) for line in lines if line.startswith(("http://", "https://")))
        return
    steps = etree.iterparse(
        io.BytesIO(data), events=("end",), tag=("{*}loc",), recover=True,
        resolve_entities=False, no_network=True, load_dtd=False,
    )  # fmt: skip
    try:
        for _, element in steps:
            above = element.getparent()
            if above is not None and element.text:
                yield etree.QName(above).localname, element.text.strip()
                above.clear()
    except etree.XMLSyntaxError:
        return


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            data = packed.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        return b""
    if len(data) > _MOST_BYTES:
        raise RejectedError("A sitemap is too large.")
    return data
