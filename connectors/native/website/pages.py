"""What a page says to those who crawl it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import requests
from lxml import html
from lxml.etree import LxmlError

from connectors.native.website.addresses import one_spelling

_UNSEEN = "//script | //style | //noscript | //template | //comment()"
_REFRESH = re.compile(r"^\s*\d*\.?\d*\s*[;,]\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_MOST_LINKS = 5000


@dataclass(frozen=True, slots=True)
class Page:
    """An HTML page, read. `text` is what a visitor sees; a token in a form changes nothing in it."""

    title: str
    digest: str
    links: tuple[str, ...]
    canonical: str
    may_index: bool


def read_page(url: str, content: bytes, charset: str, robots_header: str) -> Page:
    """Raises nothing: what cannot be read has no links."""
    root = _parsed(content, charset)
    if root is None:
        return Page("", sha256(content).hexdigest(), (), "", may_index=True)
    said = {word.strip() for word in ",".join([robots_header, *_metas(root)]).lower().split(",")}
    base = next(iter(root.xpath("//base/@href")), "")
    place = one_spelling(base, url) or url
    canonical = next(iter(root.xpath("//link[@rel='canonical']/@href")), "")
    links = [] if said & {"nofollow", "none"} else list(_links(root, place))
    title = " ".join("".join(root.xpath("(//title)[1]//text()")).split())
    for element in root.xpath(_UNSEEN):
        element.drop_tree()
    text = " ".join(root.text_content().split())
    return Page(
        title=title,
        digest=sha256(f"{title}\n{text}".encode(errors="replace")).hexdigest(),
        links=tuple(dict.fromkeys(links))[:_MOST_LINKS],
        canonical=one_spelling(canonical, place) if canonical else "",
        may_index=not said & {"noindex", "none"},
    )


def charset_of(response: requests.Response) -> str:
    """The charset that the server names, if any."""
    named = _CHARSET.search(response.headers.get("Content-Type", ""))
    return named[1] if named else ""


def as_utf8(content: bytes, charset: str) -> bytes:
    """A page in a charset that only the server named, so that it can be read without the server."""
    if not charset or charset.lower() in {"utf-8", "utf8"}:
        return content
    try:
        return b"\xef\xbb\xbf" + content.decode(charset).encode()
    except (LookupError, UnicodeDecodeError):
        return content


def _parsed(content: bytes, charset: str) -> Any:
    try:
        "".encode(charset or "utf-8")
        parser = html.HTMLParser(encoding=charset or _own_charset(content), no_network=True)
        return html.document_fromstring(content, parser=parser)
    except (LxmlError, LookupError, ValueError, AssertionError):
        return None


def _own_charset(content: bytes) -> str | None:
    """None lets the parser look for itself; without any mark in the page it would take Latin-1."""
    if _CHARSET.search(content[:4096].decode("latin-1")):
        return None
    return "utf-8"


def _metas(root: Any) -> Iterator[str]:
    for meta in root.xpath("//meta[@name and @content]"):
        if meta.get("name").strip().lower() in {"robots", "groundwork"}:
            yield meta.get("content")


def _links(root: Any, base: str) -> Iterator[str]:
    for element in root.xpath("//a[@href] | //area[@href] | //link[@rel='next' and @href]"):
        if "nofollow" not in element.get("rel", "").lower():
            yield one_spelling(element.get("href"), base)
    for source in root.xpath("//iframe/@src | //frame/@src"):
        yield one_spelling(source, base)
    for content in root.xpath("//meta[@http-equiv]/@content"):
        if target := _REFRESH.match(content):
            yield one_spelling(target[1], base)
