"""What a PDF holds beside its page text, read with pypdf: facts, bookmarks, forms, notes, attachments.

All of it is additional: whatever is broken here is left out and never costs the text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pypdf
from pypdf.errors import DependencyError, DeprecationError, PyPdfError
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

# A damaged file makes pypdf fail in any of these ways, all at the file's fault.
PYPDF_FAULTS = (
    PyPdfError, DependencyError, DeprecationError, ValueError, TypeError, LookupError,
    AttributeError, ArithmeticError, RecursionError, OSError, NotImplementedError, zlib.error,
    AssertionError,
)  # fmt: skip
_MAX_BOOKMARKS = 5_000
_MAX_ANNOTATIONS = 2_000  # of one page
_NOTE_KINDS = frozenset({
    "/Text", "/FreeText", "/Highlight", "/Underline", "/StrikeOut", "/Squiggly", "/Square", "/Circle",
    "/Line", "/Polygon", "/PolyLine", "/Stamp", "/Caret", "/Ink",
})  # fmt: skip


def read_facts(reader: pypdf.PdfReader) -> tuple[str, dict[str, str]]:
    """The title and the metadata that the document states of itself."""
    try:
        info = reader.metadata
        if info is None:
            return "", {}
        title = (info.title or "").removeprefix("Microsoft Word - ")
        facts = {"author": info.author or "", "subject": info.subject or ""}
        keywords = info.get("/Keywords")
        facts["keywords"] = keywords if isinstance(keywords, str) else ""
    except PYPDF_FAULTS:
        return "", {}
    facts["created_at"] = _date(info, "creation_date")
    facts["updated_at"] = _date(info, "modification_date")
    return title, facts


def read_bookmarks(reader: pypdf.PdfReader) -> dict[tuple[int, str], int]:
    """The outline as (page, folded title) → heading level."""
    bookmarks: dict[tuple[int, str], int] = {}
    try:
        for level, entry in _flatten(reader.outline, 1):
            page = reader.get_destination_page_number(entry)
            if page is not None and entry.title:
                bookmarks.setdefault((page + 1, fold(str(entry.title))), min(level, 6))
            if len(bookmarks) >= _MAX_BOOKMARKS:
                break
    except PYPDF_FAULTS:
        return bookmarks
    return bookmarks


def read_page_notes(reader: pypdf.PdfReader, index: int) -> list[str]:
    """Filled form fields and comments of a page, each as a line of text."""
    try:
        annotations = reader.pages[index].get("/Annots")
        entries = annotations.get_object() if annotations is not None else None
        if not isinstance(entries, ArrayObject):
            return []
        notes: list[str] = []
        for entry in list(entries)[:_MAX_ANNOTATIONS]:
            annotation = entry.get_object()
            if isinstance(annotation, DictionaryObject):
                notes.append(_field(annotation) or _comment(annotation))
    except PYPDF_FAULTS:
        return []
    return [note for note in dict.fromkeys(notes) if note]


def attachment_names(reader: pypdf.PdfReader) -> list[str]:
    """The names of the files embedded in the document."""
    try:
        return [str(attachment.name) for attachment in reader.attachment_list]
    except PYPDF_FAULTS:
        return []


def fold(text: str) -> str:
    """A heading reduced to what its bookmark shares with it."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _flatten(entries: Any, level: int) -> Iterator[tuple[int, Any]]:
    for entry in entries:
        if isinstance(entry, list):
            yield from _flatten(entry, level + 1)
        else:
            yield level, entry


def _date(info: pypdf.DocumentInformation, name: str) -> str:
    try:
        value = getattr(info, name)
    except PYPDF_FAULTS:
        return ""
    return value.isoformat() if isinstance(value, datetime) else ""


def _field(annotation: Mapping[str, Any]) -> str:
    """`name: value` of a form field that is filled; a ticked box says yes."""
    if annotation.get("/Subtype") != "/Widget":
        return ""
    kind, value = _inherited(annotation, "/FT"), _inherited(annotation, "/V")
    name = _inherited(annotation, "/TU") or _inherited(annotation, "/T")
    if value is None or kind == "/Sig":
        return ""
    if kind == "/Btn":
        state = str(annotation.get("/AS", value)).lstrip("/")
        if state in {"Off", "", "None"}:
            return ""
        return f"{name or ''}: {'yes' if state in {'Yes', 'On', '1'} else state}".lstrip(": ")
    if isinstance(value, ArrayObject):
        value = ", ".join(str(part) for part in value)
    text = value if isinstance(value, str) else ""
    return f"{name or ''}: {text}".lstrip(": ") if text.strip() else ""


def _comment(annotation: Mapping[str, Any]) -> str:
    contents = annotation.get("/Contents")
    if annotation.get("/Subtype") not in _NOTE_KINDS or not isinstance(contents, str):
        return ""
    if not contents.strip():
        return ""
    author = annotation.get("/T")
    return (
        f"Comment by {author}: {contents}"
        if isinstance(author, str) and author
        else f"Comment: {contents}"
    )


def _inherited(annotation: Mapping[str, Any], key: str) -> Any:
    """A field's property; children of a field leave what they share to their parent."""
    node: Any = annotation
    for _ in range(10):
        if not isinstance(node, DictionaryObject):
            return None
        if key in node:
            value = node[key]
            return value.get_object() if isinstance(value, IndirectObject) else value
        node = node.get("/Parent")
        node = node.get_object() if isinstance(node, IndirectObject) else node
    return None
