"""HTML pages and fragments: everything a reader may see, with headings, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import ClassVar

from lxml import etree

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder, clean, one_line
from knowledge.extraction.dates import iso_date
from knowledge.extraction.decoding import decode
from knowledge.extraction.html_blocks import BlockWalker
from knowledge.extraction.html_tables import BLOCKS, DROPPED, Element

_CHARSET = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]+)"
    rb"|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]+)",
    re.IGNORECASE,
)
_DATA_URI = re.compile(r"data:[\w/+.-]+(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=\s]{20,}")
_CREATED = ("article:published_time", "datepublished", "dcterms.created", "dc.date", "date")
_UPDATED = ("article:modified_time", "datemodified", "dcterms.modified", "last-modified")
_FACTS = ("description", "keywords", "generator")


@dataclass(frozen=True, slots=True)
class HtmlFacts:
    """What the head of a page states of it."""

    title: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


class HtmlExtractor(Extractor):
    """HTML and XHTML. Navigation is kept: what is menu and what is content cannot be told surely."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"text/html", "application/xhtml+xml"})
    suffixes: ClassVar[frozenset[str]] = frozenset({".html", ".htm", ".xhtml", ".shtml"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        data = source.stream.read()
        decoded = decode(data, source.filename, declared=declared_charset(data))
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        facts = add_html(builder, decoded.text, with_title=True)
        count = builder.block_count
        return builder.finish(
            Coverage("paragraphs", count, count), title=facts.title, metadata=facts.metadata
        )


def declared_charset(data: bytes) -> str | None:
    """The charset a page names in its head, however far down that is."""
    match = _CHARSET.search(data)
    if not match:
        return None
    return (match[1] or match[2]).decode("ascii", "replace")


def add_html(
    builder: TextBuilder, markup: str, *, heading_shift: int = 0, with_title: bool = False
) -> HtmlFacts:
    """Adds the blocks of a page or fragment. `with_title` makes the title a heading if none is."""
    text = _DATA_URI.sub("", clean(markup))
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        root = None  # nothing but comments, or nested too deeply
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        # Nested thousands deep: libxml2 stops in the middle, so the tags are read one by one.
        _add_linear(builder, text)
        return HtmlFacts()
    if root is None:
        return HtmlFacts()
    facts = _read_facts(root)
    if with_title and facts.title and next(root.iter("h1"), None) is None:
        builder.heading(facts.title, 1)
    BlockWalker(builder, heading_shift=heading_shift).walk(root)
    return facts


def html_to_text(markup: str, limits: Limits) -> str:
    """The text of a fragment, without its structure."""
    builder = TextBuilder(limits)
    add_html(builder, markup)
    return builder.finish(Coverage("paragraphs", 0, 0)).text


def _read_facts(root: Element) -> HtmlFacts:
    named = dict(reversed(list(_iter_meta(root))))
    title = next((one_line("".join(node.itertext())) for node in root.iter("title")), "")
    metadata = {name: named[name] for name in _FACTS if name in named}
    author = named.get("author") or named.get("article:author") or named.get("dc.creator") or ""
    metadata["author"] = "" if author.startswith("http") else author
    for key, names in (("created_at", _CREATED), ("updated_at", _UPDATED)):
        dates = (iso_date(named[name]) for name in names if name in named)
        metadata[key] = next((date for date in dates if date), "")
    return HtmlFacts(title or named.get("og:title", ""), metadata)


def _iter_meta(root: Element) -> Iterator[tuple[str, str]]:
    for node in root.iter("meta"):
        name = node.get("name") or node.get("property") or node.get("itemprop")
        if name and node.get("content"):
            yield name.strip().lower(), node.get("content")


class _LinearReader(HTMLParser):
    """Text and block ends in one pass, with no tree and so with no depth."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._dropped = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED and tag in {"script", "style", "template"}:
            self._dropped = self._dropped or tag
        self.pieces.append("\n\n" if tag in BLOCKS else "\n" if tag == "br" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._dropped:
            self._dropped = ""
        self.pieces.append("\n\n" if tag in BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.pieces.append(data)


def _add_linear(builder: TextBuilder, markup: str) -> None:
    reader = _LinearReader()
    reader.feed(markup)
    reader.close()
    for paragraph in re.split(r"\n\s*\n", "".join(reader.pieces)):
        builder.paragraph(paragraph)
    builder.warn(
        "The page is nested too deeply; headings, lists and tables are read as plain text."
    )
