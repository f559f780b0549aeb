"""Atlassian Document Format as Markdown.

https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/. What is unknown is passed
through: the text within it stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Node = Mapping[str, Any]

_MARKS = {"strong": "**", "em": "*", "code": "`", "strike": "~~"}
_DEEPEST = 60


def markdown(document: Any) -> str:
    """A document as Markdown: as an object, as JSON, or plain text already."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return str(document)
    if not isinstance(document, Mapping):
        return ""
    return re.sub(r"\n{3,}", "\n\n", _block(document, 0)).strip()


def _block(node: Node, depth: int) -> str:
    """A node that stands on lines of its own."""
    if depth > _DEEPEST:
        return ""
    render = _BLOCKS.get(str(node.get("type")))
    if render is not None:
        return render(node, depth)
    return _blocks(node, depth) if _has_blocks(node) else _inline(node)


def _heading(node: Node, _depth: int) -> str:
    return f"{'#' * min(6, int(_attrs(node).get('level') or 1))} {_inline(node)}"


def _code(node: Node, _depth: int) -> str:
    return f"```{_attrs(node).get('language') or ''}\n{_inline(node)}\n```"


def _quote(node: Node, depth: int) -> str:
    return _indented(_blocks(node, depth), "> ")


def _expand(node: Node, depth: int) -> str:
    title = _attrs(node).get("title") or ""
    return f"**{title}**\n\n{_blocks(node, depth)}" if title else _blocks(node, depth)


def _blocks(node: Node, depth: int) -> str:
    parts = (_block(child, depth + 1) for child in _children(node))
    return "\n\n".join(part for part in parts if part.strip())


def _has_blocks(node: Node) -> bool:
    return any("content" in child or child.get("type") == "rule" for child in _children(node))


def _list(node: Node, depth: int) -> str:
    """Items with their marks, what is within them indented."""
    number = int(_attrs(node).get("order") or 1)
    lines: list[str] = []
    for child in _children(node):
        if child.get("type") in {"taskList", "bulletList", "orderedList"}:
            lines.append(_indented(_block(child, depth + 1), "  "))
            continue
        mark = f"{number}." if node["type"] == "orderedList" else "-"
        number += 1
        if child.get("type") == "taskItem":
            mark += " [x]" if _attrs(child).get("state") == "DONE" else " [ ]"
        text = _block(child, depth + 1).replace("\n\n", "\n")
        lines.append(f"{mark} {_indented(text, '  ').lstrip()}")
    return "\n".join(lines)


def _table(node: Node, depth: int) -> str:
    rows = [
        [" ".join(_block(cell, depth + 1).replace("|", "\\|").split()) for cell in _children(row)]
        for row in _children(node)
    ]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _inline(node: Node) -> str:
    return "".join(_leaf(child) for child in _children(node))


def _leaf(node: Node) -> str:
    render = _LEAVES.get(str(node.get("type")), _inline)
    return render(node)


def _text(node: Node) -> str:
    return _marked(str(node.get("text") or ""), node.get("marks") or ())


def _labelled(node: Node) -> str:
    attrs = _attrs(node)
    return str(attrs.get("text") or attrs.get("shortName") or "")


def _media(node: Node) -> str:
    return f"[{_attrs(node)['alt']}]" if _attrs(node).get("alt") else ""


def _marked(text: str, marks: Sequence[Node]) -> str:
    for mark in marks:
        kind = str(mark.get("type"))
        if kind == "link":
            text = f"[{text}]({_attrs(mark).get('href') or ''})"
        elif kind in _MARKS and text.strip():
            text = f"{_MARKS[kind]}{text}{_MARKS[kind]}"
    return text


def _card(node: Node) -> str:
    url = _attrs(node).get("url") or (_attrs(node).get("data") or {}).get("url") or ""
    return f"<{url}>" if url else ""


def _date(node: Node) -> str:
    timestamp = str(_attrs(node).get("timestamp") or "")
    if not timestamp.isdigit():
        return ""
    return datetime.fromtimestamp(int(timestamp) / 1000, UTC).date().isoformat()


def _indented(text: str, prefix: str) -> str:
    return "\n".join(f"{prefix}{line}".rstrip() for line in text.split("\n"))


def _children(node: Node) -> list[Node]:
    content = node.get("content")
    return [one for one in content if isinstance(one, Mapping)] if isinstance(content, list) else []


def _attrs(node: Node) -> Node:
    found = node.get("attrs")
    return found if isinstance(found, Mapping) else {}


_BLOCKS: Mapping[str, Callable[[Node, int], str]] = {
    "paragraph": lambda node, _: _inline(node),
    "caption": lambda node, _: _inline(node),
    "mediaSingle": lambda node, _: _inline(node),
    "mediaGroup": lambda node, _: _inline(node),
    "heading": _heading,
    "codeBlock": _code,
    "bulletList": _list,
    "orderedList": _list,
    "taskList": _list,
    "decisionList": _list,
    "blockquote": _quote,
    "panel": _quote,
    "table": _table,
    "rule": lambda _node, _depth: "---",
    "expand": _expand,
    "nestedExpand": _expand,
    "blockCard": lambda node, _: _card(node),
    "embedCard": lambda node, _: _card(node),
}
_LEAVES: Mapping[str, Callable[[Node], str]] = {
    "text": _text,
    "hardBreak": lambda _: "\n",
    "mention": _labelled,
    "status": _labelled,
    "emoji": _labelled,
    "date": _date,
    "inlineCard": _card,
    "media": _media,
    "mediaInline": _media,
}
