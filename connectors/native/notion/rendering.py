"""From Notion's blocks, properties and rich text to Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]
ChildrenOf = Callable[[str], Iterable[Json]]

_DEEPEST = 10
_MOST_BLOCKS = 5_000
_INDENT = "    "
_PREFIXES = {
    "heading_1": "# ", "heading_2": "## ", "heading_3": "### ", "heading_4": "#### ",
    "bulleted_list_item": "- ", "numbered_list_item": "1. ", "toggle": "- ", "quote": "> ", "callout": "> ",
}  # fmt: skip
_NESTING = frozenset({"bulleted_list_item", "numbered_list_item", "to_do", "toggle"})
_APART = frozenset({"child_page", "child_database"})  # documents of their own
_MARKS = (("bold", "**"), ("italic", "*"), ("strikethrough", "~~"))


def render_text(parts: Sequence[Json] | None) -> str:
    """Rich text with its emphasis and links."""
    return "".join(_render_part(part) for part in parts or ())


def plain_text(parts: Sequence[Json] | None) -> str:
    """Rich text without."""
    return "".join(str(part.get("plain_text") or "") for part in parts or ()).strip()


def render_blocks(root: str, children_of: ChildrenOf) -> str:
    """Everything below a page. What lies deeper than ten levels, or comes after some thousand blocks, is left
    out, and said to be."""
    lines: list[str] = []
    for number, line in enumerate(_lines(root, children_of, 0, "")):
        if number >= _MOST_BLOCKS:
            lines.append("…")
            break
        lines.append(line)
    return "\n".join(_spaced(lines)).strip()


def render_property(value: Json) -> Any:
    """A property's value as text, number, truth or list; None when it is empty."""
    kind = str(value.get("type", ""))
    found = value.get(kind)
    if kind in _READERS:
        return _READERS[kind](found) if found else None
    return found if isinstance(found, str | int | float | bool) else None


def properties_of(page: Json) -> dict[str, Any]:
    """A page's properties that have a value, but for its title."""
    found = {
        name: render_property(value)
        for name, value in (page.get("properties") or {}).items()
        if isinstance(value, Mapping) and value.get("type") != "title"
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def title_of(thing: Json) -> str:
    """The title of a page, a database or a data source."""
    if isinstance(thing.get("title"), list):
        return plain_text(thing["title"])
    for value in (thing.get("properties") or {}).values():
        if isinstance(value, Mapping) and value.get("type") == "title":
            return plain_text(value.get("title"))
    return ""


def shown(value: Any) -> str:
    """A property's value for people."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _lines(parent: str, children_of: ChildrenOf, depth: int, indent: str) -> Iterator[str]:
    for block in children_of(parent):
        kind = str(block.get("type", ""))
        if kind == "table":
            yield from (indent + row for row in _table(block, children_of))
            continue
        yield from (indent + line for line in _render_block(kind, block.get(kind) or {}))
        if not block.get("has_children") or kind in _APART:
            continue
        if depth + 1 >= _DEEPEST:
            yield f"{indent}…"
            continue
        deeper = indent + _INDENT if kind in _NESTING else indent
        yield from _lines(str(block["id"]), children_of, depth + 1, deeper)


def _render_block(kind: str, content: Json) -> list[str]:
    text = render_text(content.get("rich_text"))
    if kind in _PREFIXES:
        prefix = _PREFIXES[kind]
        return [prefix + line for line in text.splitlines()[:1]] + [
            ("> " if prefix == "> " else _INDENT) + line for line in text.splitlines()[1:]
        ]
    if kind in _BLOCKS:
        return _BLOCKS[kind](content)
    return text.splitlines()


def _link(content: Json) -> list[str]:
    """A link with its caption. Addresses of uploaded files end within an hour: their names stay."""
    label = plain_text(content.get("caption")) or str(content.get("name") or "")
    url = str(content.get("url") or (content.get("external") or {}).get("url") or "")
    if not url:
        return [label] if label else []
    return [f"[{label or url}]({url})"]


def _table(block: Json, children_of: ChildrenOf) -> Iterator[str]:
    for number, row in enumerate(children_of(str(block["id"]))):
        cells = [
            render_text(cell).replace("|", "\\|").replace("\n", " ")
            for cell in (row.get("table_row") or {}).get("cells") or ()
        ]
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{' --- |' * len(cells)}"


def _render_part(part: Json) -> str:
    text = str(part.get("plain_text") or "")
    marks = part.get("annotations") or {}
    bare = text.strip()
    if not bare:
        return text
    shown = f"`{bare}`" if marks.get("code") else bare
    for name, mark in _MARKS:
        if marks.get(name):
            shown = f"{mark}{shown}{mark}"
    if part.get("href"):
        shown = f"[{shown}]({part['href']})"
    return text.replace(bare, shown, 1)


def _spaced(lines: Sequence[str]) -> Iterator[str]:
    """Blank lines between blocks, but not within lists, quotes, tables and code."""
    before, in_code = "", False
    for line in lines:
        kind = line.lstrip()[:1]
        if before and not in_code and not (kind and kind in "-1>|" and before == kind):
            yield ""
        yield line
        if line.lstrip().startswith("```"):
            in_code = not in_code
        before = kind or before


def _to_do(content: Json) -> list[str]:
    return [f"- [{'x' if content.get('checked') else ' '}] {render_text(content.get('rich_text'))}"]


def _code(content: Json) -> list[str]:
    lines = plain_text(content.get("rich_text")).splitlines()
    return [f"```{content.get('language') or ''}", *lines, "```"]


def _date(value: Json) -> str | None:
    if not value.get("start"):
        return None
    return f"{value['start']} – {value['end']}" if value.get("end") else str(value["start"])


def _rollup(value: Json) -> Any:
    if value.get("type") != "array":
        return render_property(value)
    found = [render_property(one) for one in value.get("array") or ()]
    return [shown(one) for one in found if one is not None][:50] or None


def _name(value: Json) -> Any:
    return value.get("name")


def _names(values: Iterable[Json]) -> Any:
    return [one["name"] for one in values if one.get("name")] or None


_READERS: dict[str, Callable[[Any], Any]] = {
    "title": plain_text,
    "rich_text": plain_text,
    "select": _name,
    "status": _name,
    "created_by": _name,
    "last_edited_by": _name,
    "multi_select": _names,
    "people": _names,
    "files": _names,
    "date": _date,
    "formula": render_property,
    "rollup": _rollup,
    "unique_id": lambda value: f"{value.get('prefix') or ''}-{value.get('number')}".lstrip("-"),
}
_BLOCKS: dict[str, Callable[[Json], list[str]]] = {
    "to_do": _to_do,
    "code": _code,
    "equation": lambda content: [f"$${content.get('expression', '')}$$"],
    "divider": lambda _: ["---"],
    "child_page": lambda content: [f"- {content.get('title', '')}"],
    "child_database": lambda content: [f"- {content.get('title', '')}"],
    **dict.fromkeys(
        ("bookmark", "embed", "link_preview", "image", "video", "audio", "file", "pdf"), _link
    ),
}
