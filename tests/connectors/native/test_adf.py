"""Atlassian's documents as Markdown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.native.atlassian.adf import markdown


def node(kind: str, *content: Any, **attrs: Any) -> dict[str, Any]:
    """A node of a document."""
    children = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return {"type": kind, "attrs": attrs, "content": children}


def paragraph(*content: Any) -> dict[str, Any]:
    return node("paragraph", *content)


def marked(text: str, *marks: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "marks": [{"type": one} for one in marks]}


LINK = {
    "type": "text",
    "text": "wiki",
    "marks": [{"type": "link", "attrs": {"href": "https://w.example"}}],
}


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (node("heading", "苍鹭", level=2), "## 苍鹭"),
        (paragraph("a ", marked("b", "strong"), " ", LINK), "a **b** [wiki](https://w.example)"),
        (node("codeBlock", "x = 1\ny", language="python"), "```python\nx = 1\ny\n```"),
        (node("panel", paragraph("Mind"), paragraph("this")), "> Mind\n>\n> this"),
        (
            node("bulletList", node("listItem", paragraph("a"), node("orderedList", node("listItem", paragraph("b"))))),
            "- a\n  1. b",
        ),
        (
            node("taskList", node("taskItem", "done", state="DONE"), node("taskItem", "open", state="TODO")),
            "- [x] done\n- [ ] open",
        ),
        (
            node(
                "table",
                node("tableRow", node("tableHeader", paragraph("鸟")), node("tableHeader", paragraph("n"))),
                node("tableRow", node("tableCell", paragraph("a|b")), node("tableCell", paragraph("1"), paragraph("2"))),
            ),
            "| 鸟 | n |\n| --- | --- |\n| a\\|b | 1 2 |",
        ),
        (node("expand", paragraph("inside"), title="More"), "**More**\n\ninside"),
        (paragraph(node("mention", text="@Ana"), node("hardBreak"), node("date", timestamp="1735689600000")), "@Ana\n2025-01-01"),
        (node("blockCard", url="https://w.example"), "<https://w.example>"),
        (node("mediaSingle", node("media", alt="heron.png")), "[heron.png]"),
        (node("layoutSection", node("layoutColumn", paragraph("left"))), "left"),
        (node("unheardOf", paragraph("kept")), "kept"),
        (node("rule"), "---"),
    ],
)  # fmt: skip
def test_blocks(block: dict[str, Any], text: str) -> None:
    assert markdown({"type": "doc", "version": 1, "content": [block]}) == text


def test_documents_come_as_json_or_text_too() -> None:
    document = {"type": "doc", "content": [paragraph("a"), paragraph("b")]}
    assert markdown(json.dumps(document)) == "a\n\nb"
    assert markdown("plain") == "plain"
    assert markdown(None) == ""


def test_depth_has_an_end() -> None:
    deep: dict[str, Any] = paragraph("x")
    for _ in range(200):
        deep = node("blockquote", deep)
    assert "x" not in markdown({"type": "doc", "content": [deep]})
