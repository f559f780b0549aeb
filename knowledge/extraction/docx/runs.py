"""The running text of a Word paragraph as a reader sees it: insertions in, deletions out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lxml import etree

from knowledge.extraction.docx.names import M, W, is_on
from knowledge.extraction.drawing import MC, chosen

NoteKind = Literal["footnote", "endnote", "comment"]

_TEXT = frozenset({f"{W}t", f"{M}t"})
_CHARACTERS = {
    f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-",
}  # fmt: skip
# Deleted or moved away; reading aids over the base text; properties.
_UNSEEN = frozenset({
    f"{W}del", f"{W}moveFrom", f"{W}rt", f"{W}rPr", f"{W}pPr", f"{W}sdtPr", f"{W}instrText",
    f"{W}delText", f"{W}delInstrText",
})  # fmt: skip
_NOTES: dict[str, NoteKind] = {
    f"{W}footnoteReference": "footnote",
    f"{W}endnoteReference": "endnote",
    f"{W}commentReference": "comment",
}
_DRAWINGS = frozenset({f"{W}drawing", f"{W}pict", f"{W}object"})
_ALTERNATIVES = f"{MC}AlternateContent"
_TEXT_BOX = f"{W}txbxContent"
# Fonts of pictures: their characters are bullets, ticks and arrows, not the letters at their codes.
_SYMBOL_FONTS = frozenset({"symbol", "wingdings", "wingdings 2", "wingdings 3", "webdings"})
_MAX_DEPTH = 100


@dataclass(slots=True)
class Running:
    """Running text, with what hangs on it and is read after it."""

    text: str = ""
    notes: list[tuple[NoteKind, str]] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)
    drawings: list[etree._Element] = field(default_factory=list)


def read_running(paragraph: etree._Element) -> Running:
    """The text of a `w:p` and the text boxes, drawings and notes that are anchored in it."""
    running = Running()
    parts: list[str] = []
    _collect(paragraph, running, parts, 0)
    running.text = "".join(parts)
    return running


def ends_in_deletion(paragraph: etree._Element) -> bool:
    """Whether the paragraph's end is deleted or moved away, so that the next one goes on with it."""
    properties = paragraph.find(f"{W}pPr/{W}rPr")
    if properties is None:
        return False
    return properties.find(f"{W}del") is not None or properties.find(f"{W}moveFrom") is not None


def _collect(node: etree._Element, running: Running, parts: list[str], depth: int) -> None:
    for child in node:
        tag = child.tag
        if tag in _TEXT:
            parts.append(child.text or "")
        elif tag in _CHARACTERS:
            parts.append(_CHARACTERS[tag])
        elif tag == f"{W}sym":
            parts.append(_symbol(child))
        elif tag in _NOTES:
            running.notes.append((_NOTES[tag], child.get(f"{W}id", "")))
        elif tag in _DRAWINGS:
            _find_boxes(child, running.boxes, 0)
            running.drawings.append(child)
        elif depth < _MAX_DEPTH and (inner := _seen(child)) is not None:
            _collect(inner, running, parts, depth + 1)


def _seen(node: etree._Element) -> etree._Element | None:
    """What of an element a reader sees: itself, one of its alternatives, or nothing."""
    if node.tag == _ALTERNATIVES:
        return chosen(node)
    is_hidden = node.tag == f"{W}r" and is_on(node, "rPr/vanish")
    return None if is_hidden or node.tag in _UNSEEN or not isinstance(node.tag, str) else node


def _find_boxes(node: etree._Element, boxes: list[etree._Element], depth: int) -> None:
    """The outermost text boxes below `node`; boxes within boxes are read with them."""
    if depth > _MAX_DEPTH:
        return
    for child in node:
        if child.tag == _TEXT_BOX:
            boxes.append(child)
        elif child.tag == _ALTERNATIVES:
            branch = chosen(child)
            if branch is not None:
                _find_boxes(branch, boxes, depth + 1)
        elif isinstance(child.tag, str):
            _find_boxes(child, boxes, depth + 1)


def _symbol(node: etree._Element) -> str:
    try:
        code = int(node.get(f"{W}char", ""), 16)
    except ValueError:
        return ""
    if node.get(f"{W}font", "").lower() in _SYMBOL_FONTS:
        return " • "
    return chr(code) if 0 < code < 0x110000 else ""
