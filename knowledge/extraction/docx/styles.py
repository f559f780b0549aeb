"""Paragraph styles: which are headings, and of what level."""

from __future__ import annotations

from dataclasses import dataclass

import regex
from lxml import etree

from knowledge.extraction.docx.names import W, number_of, value_of

# Built-in styles keep their English name in the file; only their id is translated.
_HEADING_NAME = regex.compile(r"^heading\s*([1-9])$", regex.IGNORECASE)
_BODY_LEVEL = 9
_MAX_BASES = 20


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """What a style says of a paragraph. `level` is 0 where it is no heading."""

    level: int = 0
    is_title: bool = False
    number_id: str | None = None
    number_level: int | None = None


class Styles:
    """The paragraph styles of a document, by id."""

    def __init__(self, root: etree._Element | None) -> None:
        found = root.iterfind(f"{W}style") if root is not None else ()
        self._nodes = {node.get(f"{W}styleId", ""): node for node in found}
        self._cache: dict[str, ParagraphStyle] = {}

    def of(self, properties: etree._Element | None) -> ParagraphStyle:
        """The style of a paragraph, with the outline level it may set itself."""
        style = self._style(value_of(properties, "pStyle") or "")
        own = value_of(properties, "outlineLvl")
        if own is None:
            return style
        level = number_of(own, _BODY_LEVEL)
        level = level + 1 if 0 <= level < _BODY_LEVEL else 0
        return ParagraphStyle(level, style.is_title, style.number_id, style.number_level)

    def _style(self, style_id: str) -> ParagraphStyle:
        if style_id not in self._cache:
            self._cache[style_id] = self._resolved(style_id)
        return self._cache[style_id]

    def _resolved(self, style_id: str) -> ParagraphStyle:
        level: int | None = _level_of_name(style_id) if style_id not in self._nodes else None
        is_title = False
        number_id = number_level = None
        node = self._nodes.get(style_id)
        for _ in range(_MAX_BASES):
            if node is None:
                break
            name = value_of(node, "name") or ""
            is_title = is_title or name.lower() == "title"
            if level is None:
                level = _level(node, name)
            number_id = number_id or value_of(node, "pPr/numPr/numId")
            number_level = number_level or value_of(node, "pPr/numPr/ilvl")
            node = self._nodes.get(value_of(node, "basedOn") or "")
        depth = None if number_level is None else number_of(number_level)
        return ParagraphStyle(level or 0, is_title, number_id, depth)


def _level(node: etree._Element, name: str) -> int | None:
    outline = value_of(node, "pPr/outlineLvl")
    if outline is not None:
        level = number_of(outline, _BODY_LEVEL)
        return level + 1 if 0 <= level < _BODY_LEVEL else 0
    return _level_of_name(name)


def _level_of_name(name: str) -> int | None:
    match = _HEADING_NAME.match(name)
    return int(match[1]) if match else None
