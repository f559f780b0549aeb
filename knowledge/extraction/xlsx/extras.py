"""Text of a sheet outside of its cells: comments, shapes, charts."""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.extraction.drawing import MC, body_text, chosen, linked_texts
from knowledge.extraction.ooxml import Package
from knowledge.extraction.xlsx.cells import S, string_text

_XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"


def read_comments(package: Package, sheet: str, persons: dict[str, str]) -> Iterator[str]:
    """The comments of a sheet, each with its cell. Threads replace the old-style copy of themselves."""
    threaded: set[str] = set()
    for part in package.related(sheet, "threadedComment"):
        root = package.xml(part)
        for node in root if root is not None else ():
            reference, text = node.get("ref", ""), node.findtext("{*}text", "")
            threaded.add(reference)
            if text.strip():
                yield _comment(reference, persons.get(node.get("personId", ""), ""), text)
    for part in package.related(sheet, "comments"):
        root = package.xml(part)
        if root is None:
            continue
        authors = [node.text or "" for node in root.iterfind(f"{S}authors/{S}author")]
        for node in root.iter(f"{S}comment"):
            body, reference = node.find(f"{S}text"), node.get("ref", "")
            text = string_text(body).strip() if body is not None else ""
            if text and reference not in threaded:
                index = node.get("authorId", "")
                author = (
                    authors[int(index)] if index.isdigit() and int(index) < len(authors) else ""
                )
                # Excel puts the author's name in front of the text itself.
                yield _comment(
                    reference, author, text.removeprefix(f"{author}:").strip() if author else text
                )


def read_persons(package: Package, workbook: str) -> dict[str, str]:
    """The names of those who wrote threaded comments, by id."""
    persons: dict[str, str] = {}
    for part in package.related(workbook, "person"):
        root = package.xml(part)
        for node in root if root is not None else ():
            persons[node.get("id", "")] = node.get("displayName", "")
    return persons


def read_drawings(package: Package, sheet: str) -> Iterator[str]:
    """The text of a sheet's shapes and charts."""
    for part in package.related(sheet, "drawing"):
        root = package.xml(part)
        if root is None:
            continue
        for alternatives in list(root.iter(f"{MC}AlternateContent")):
            kept = chosen(alternatives)
            for branch in alternatives:
                if branch is not kept:
                    alternatives.remove(branch)
        for body in root.iter(f"{_XDR}txBody"):
            if text := body_text(body):
                yield text
        yield from linked_texts(package, part, root)


def _comment(reference: str, author: str, text: str) -> str:
    by = f" by {author}" if author and author.lower() not in {"author", "unknown"} else ""
    return f"Comment on {reference}{by}: {text}"
