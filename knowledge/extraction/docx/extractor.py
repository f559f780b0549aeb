"""Word files (.docx): headings, paragraphs, numbered lists, tables, text boxes, notes, headers, footers.

python-docx shows the body's paragraphs and tables only and refuses Strict files; insertions, text
boxes, content controls, notes and list numbers are outside of its model. So the parts are read
directly, with lxml.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from lxml import etree

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.docx.body import BodyReader
from knowledge.extraction.docx.names import W
from knowledge.extraction.docx.numbering import Numbering
from knowledge.extraction.docx.runs import NoteKind, read_running
from knowledge.extraction.docx.styles import Styles
from knowledge.extraction.drawing import MC, chosen
from knowledge.extraction.ooxml import RELATIONS_NAMESPACE, Package

_NOTE_PARTS: dict[str, NoteKind] = {
    "footnotes": "footnote",
    "endnotes": "endnote",
    "comments": "comment",
}
_SEPARATORS = frozenset({"separator", "continuationSeparator", "continuationNotice"})
_UNSEEN = frozenset({f"{W}del", f"{W}moveFrom"})


class DocxExtractor(Extractor):
    """The text as it reads with all tracked changes accepted; each note after what it belongs to."""

    mime_types: ClassVar[frozenset[str]] = frozenset({
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        "application/vnd.ms-word.document.macroenabled.12",
        "application/vnd.ms-word.template.macroenabled.12",
    })  # fmt: skip
    suffixes: ClassVar[frozenset[str]] = frozenset({".docx", ".docm", ".dotx", ".dotm"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        """Read the file. Raises `ExtractionError`."""
        package = Package(source, limits)
        main = package.main_part("word/document.xml")
        root = package.xml(main)
        body = root.find(f"{W}body") if root is not None else None
        if root is None or body is None:
            raise package.corrupt()
        builder = TextBuilder(limits)
        notes = {key: node for part in _NOTE_PARTS for key, node in _notes(package, main, part)}
        styles = Styles(_related_root(package, main, "styles"))
        numbering = Numbering(_related_root(package, main, "numbering"))
        reader = BodyReader(package, builder, styles, numbering, notes, limits)
        _read_margins(package, reader, main, root, "header")
        before = reader.paragraphs_with_text
        reader.read(main, body, with_headings=True)
        read = reader.paragraphs_with_text - before
        reader.read_leftover_notes()
        _read_margins(package, reader, main, root, "footer")
        _warn(package, builder, main)
        title, facts = package.facts()
        found = sum(1 for node in _visible_paragraphs(body) if read_running(node).text.strip())
        coverage = Coverage("paragraphs", max(found, read), read)
        return builder.finish(coverage, title=title or reader.first_title, metadata=facts)


def _related_root(package: Package, main: str, kind: str) -> etree._Element | None:
    name = next(iter(package.related(main, kind)), f"word/{kind}.xml")
    return package.xml(name)


def _notes(
    package: Package, main: str, kind: str
) -> Iterator[tuple[tuple[NoteKind, str], etree._Element]]:
    root = _related_root(package, main, kind)
    for node in root if root is not None else ():
        if isinstance(node.tag, str) and node.get(f"{W}type") not in _SEPARATORS:
            yield (_NOTE_PARTS[kind], node.get(f"{W}id", "")), node


def _read_margins(
    package: Package, reader: BodyReader, main: str, root: etree._Element, kind: str
) -> None:
    """Each header or footer once, however many sections and page kinds show it."""
    relations = package.relations(main)
    seen: set[str] = set()
    for reference in root.iter(f"{W}{kind}Reference"):
        relation = relations.get(reference.get(f"{RELATIONS_NAMESPACE}id", ""))
        margin = package.xml(relation.target) if relation else None
        if relation is None or margin is None:
            continue
        text = "".join("".join(part.itertext()) for part in margin.iter(f"{W}t"))
        key = "".join(char for char in text if char.isalpha())
        # Bare page numbers say nothing.
        if key and key not in seen:
            seen.add(key)
            reader.read(relation.target, margin)


def _visible_paragraphs(node: etree._Element) -> Iterator[etree._Element]:
    for child in node:
        if child.tag == f"{MC}AlternateContent":
            branch = chosen(child)
            if branch is not None:
                yield from _visible_paragraphs(branch)
        elif isinstance(child.tag, str) and child.tag not in _UNSEEN:
            if child.tag == f"{W}p":
                yield child
            yield from _visible_paragraphs(child)


def _warn(package: Package, builder: TextBuilder, main: str) -> None:
    relations = package.relations(main).values()
    embedded = sum(relation.kind in {"oleObject", "package"} for relation in relations)
    if embedded:
        builder.warn(f"{embedded} embedded file(s) were not read.")
    images = sum(relation.kind == "image" for relation in relations)
    if images and builder.block_count == 0:
        builder.warn(f"The document holds {images} image(s) and no text; OCR is not available.")
    if damage := package.damage_warning():
        builder.warn(damage)
