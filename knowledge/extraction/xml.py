"""XML of any vocabulary: records as `name: value` lines, prose as paragraphs, tables as tables.

Entities are never expanded and nothing is fetched, whatever the file declares.
"""

from __future__ import annotations

import html.entities
import re
from html import unescape
from typing import ClassVar

from lxml import etree

from knowledge.extraction.base import (
    Coverage,
    Extracted,
    ExtractionError,
    Extractor,
    Fault,
    Limits,
    Source,
)
from knowledge.extraction.builder import TextBuilder, clean
from knowledge.extraction.decoding import Decoded, decode
from knowledge.extraction.html_tables import Element
from knowledge.extraction.text import extract_plain
from knowledge.extraction.xml_blocks import XmlWalker, local_name, own_text

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)")
_PROLOG = re.compile(r"\A\s*<\?xml[^>]*\?>")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_ENTITY = re.compile(r"&([A-Za-z][\w.-]*);")
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_TOO_DEEP = "Excessive depth"


class XmlExtractor(Extractor):
    """XML documents and feeds. What is not well-formed is read without its tags, with a warning."""

    mime_types: ClassVar[frozenset[str]] = frozenset(
        {"application/xml", "text/xml", "application/rss+xml", "application/atom+xml"}
    )
    suffixes: ClassVar[frozenset[str]] = frozenset(
        [
            ".xml",
            ".rss",
            ".atom",
            ".rdf",
            ".xsd",
            ".xsl",
            ".xslt",
            ".svg",
            ".kml",
            ".gpx",
            ".dita",
            ".docbook",
            ".xliff",
            ".opml",
            ".wsdl",
        ]
    )

    def extract(self, source: Source, limits: Limits) -> Extracted:
        data = source.stream.read()
        match = _DECLARED.search(data[:1024])
        declared = match[1].decode("ascii") if match else None
        decoded = decode(data, source.filename, declared=declared)
        try:
            root = _parse(decoded.text)
        except etree.XMLSyntaxError as error:
            if _TOO_DEEP in str(error):
                raise _too_deep(source.filename, limits) from error
            return _read_invalid(decoded, error, limits)
        if _depth(root) > limits.max_depth:
            raise _too_deep(source.filename, limits)
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        walker = XmlWalker(builder, limits)
        walker.walk(root)
        count = builder.block_count
        return builder.finish(Coverage("paragraphs", count, count), title=_title(root))


def _parse(text: str) -> Element:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,  # libxml2 keeps its own bounds against expansion and depth
    )
    # The declaration speaks of the bytes, which are decoded by now.
    body = _PROLOG.sub(lambda match: "\n" * match[0].count("\n"), clean(text)).rstrip()
    return etree.fromstring(_name_entities(body).encode(), parser)


def _name_entities(text: str) -> str:
    """Writes out HTML's named signs (`&nbsp;`), which files use without declaring them."""

    def shown(match: re.Match[str]) -> str:
        name = match[1]
        sign = None if name in _XML_ENTITIES else html.entities.html5.get(f"{name};")
        return match[0] if sign is None else sign.replace("&", "&amp;").replace("<", "&lt;")

    return text if "<!ENTITY" in text else _ENTITY.sub(shown, text)


def _depth(root: Element) -> int:
    depth = deepest = 0
    for event, _node in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    return deepest


def _title(root: Element) -> str:
    """The title of a document or feed: a leaf named so at the top or one level below."""
    for node in (*root.iterchildren(), *(leaf for child in root for leaf in child)):
        if local_name(node) == "title" and not len(node):
            return own_text(node)
    return ""


def _too_deep(filename: str, limits: Limits) -> ExtractionError:
    return ExtractionError(
        Fault.TOO_LARGE,
        f"{filename} is nested more than {limits.max_depth} levels deep, which no reader could "
        "follow. Upload the part that matters.",
    )


def _read_invalid(decoded: Decoded, error: etree.XMLSyntaxError, limits: Limits) -> Extracted:
    text = re.sub(r"<!--.*?-->", " ", _DOCTYPE.sub(" ", decoded.text), flags=re.DOTALL)
    text = re.sub(r"<!\[CDATA\[(.*?)\]\]>", r"\1", text, flags=re.DOTALL)
    text = unescape(re.sub(r"</?[A-Za-z_?][^<>]*>", " ", text))
    warning = (
        f"The file is not well-formed XML (line {error.lineno}); its text is read without tags."
    )
    return extract_plain(text, limits, warnings=(*decoded.warnings, warning))
