"""The element names of WordprocessingML."""

from __future__ import annotations

from lxml import etree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
VAL = f"{W}val"


def value_of(node: etree._Element | None, path: str) -> str | None:
    """The `w:val` of the element at `path` (names with `w:` left out); None where it is missing."""
    if node is None:
        return None
    found = node.find("/".join(W + step for step in path.split("/")))
    return None if found is None else found.get(VAL)


def number_of(text: str | None, default: int = 0) -> int:
    """A whole number from an attribute; damaged files hold anything."""
    try:
        return int(text) if text is not None else default
    except ValueError:
        return default


def is_on(node: etree._Element | None, path: str) -> bool:
    """Whether the switch at `path` is set; it is when it stands there without a value."""
    if node is None:
        return False
    found = node.find("/".join(W + step for step in path.split("/")))
    return found is not None and found.get(VAL, "1") not in {"0", "false", "off"}
