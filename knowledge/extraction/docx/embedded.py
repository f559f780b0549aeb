"""Whole documents that a Word file takes in as they are (`w:altChunk`): HTML, plain text, Word."""

from __future__ import annotations

import io
import posixpath

from knowledge.extraction.base import BlockKind, ExtractionError, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.ooxml import Package
from knowledge.extraction.registry import load_extractor

_FORMATS = {".htm": "html", ".html": "html", ".xhtml": "html", ".txt": "text", ".mht": "eml"}


def write_embedded(package: Package, builder: TextBuilder, name: str, limits: Limits) -> None:
    """Write the text of the part `name`; what cannot be read becomes a warning."""
    data = package.read(name)
    form = _FORMATS.get(posixpath.splitext(name.lower())[1])
    if not data or form is None:
        builder.warn("A document embedded in the text was not read.")
        return
    source = Source(io.BytesIO(data), posixpath.basename(name), len(data))
    try:
        extracted = load_extractor(form).extract(source, limits)
    except ExtractionError as error:
        builder.warn(f"A document embedded in the text was not read: {error.message}")
        return
    for block in extracted.blocks:
        text = extracted.text[block.start : block.end]
        if block.kind is BlockKind.HEADING:
            builder.heading(text, block.level)
        else:
            builder.paragraph(text)
