"""What tools and resources of MCP servers give, as text and hits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp.types import (
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from connectors.base import LiveHit

_LISTS = ("results", "items", "hits", "documents", "data")
_TEXTS = ("text", "content", "snippet", "description", "summary")


def text_of(result: CallToolResult) -> str:
    """The text of a result; its structured content where there is no text."""
    parts = [part for block in result.content if (part := _block_text(block))]
    if not parts and result.structured_content is not None:
        shown = json.dumps(result.structured_content, ensure_ascii=False, indent=2)
        return f"```json\n{shown}\n```"
    return "\n\n".join(parts)


def hits_of(result: CallToolResult) -> Iterator[LiveHit]:
    """A search tool's results: objects in a list, or else each piece of text."""
    found = _listed(result.structured_content)
    for block in () if found else result.content:
        text = _block_text(block)
        listed = _listed(_parsed(text))
        found += listed or ([{"text": text}] if text else [])
    for number, one in enumerate(found):
        yield _hit(number, one)


def _block_text(block: Any) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    if isinstance(block, ResourceLink):
        return f"[{block.title or block.name}]({block.uri})"
    return ""  # images and sounds


def _listed(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        value = next((value[key] for key in (*_LISTS, "result") if key in value), None)
        if isinstance(value, Mapping):
            return _listed(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [one for one in value if isinstance(one, Mapping)]
    return []


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _hit(number: int, one: Mapping[str, Any]) -> LiveHit:
    text = str(next((one[key] for key in _TEXTS if one.get(key)), ""))
    title = str(one.get("title") or one.get("name") or text.strip().partition("\n")[0][:100])
    url = str(one.get("url") or one.get("link") or one.get("uri") or "")
    return LiveHit(
        external_id=str(one.get("id") or url or number),
        title=title or url,
        text=text or title,
        url=url if url.startswith(("https://", "http://")) else "",
        author=str(one.get("author") or ""),
    )
