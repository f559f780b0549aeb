"""The numbers that Word shows before list entries and headings; the file only says how to count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import regex
from lxml import etree

from knowledge.extraction.docx.names import W, number_of, value_of

_PLACEHOLDER = regex.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_BULLET = "-"


@dataclass(frozen=True, slots=True)
class _Level:
    start: int = 1
    shape: str = "decimal"
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """A list of the document. Lists of one abstract list count on, unless one sets its start anew."""

    abstract_id: str
    levels: Mapping[int, _Level]
    restarts: frozenset[int]


def roman(number: int) -> str:
    """A number in small Roman figures."""
    if not 0 < number < 4000:
        return str(number)
    text = ""
    for value, figure in _ROMAN:
        text += figure * (number // value)
        number %= value
    return text


def letters(number: int) -> str:
    """a, b, … z, aa, bb, … as Word counts with letters."""
    if number < 1:
        return str(number)
    repeat, index = divmod(number - 1, 26)
    return chr(ord("a") + index) * min(repeat + 1, 10)


_SHAPES: Mapping[str, Callable[[int], str]] = {
    "lowerRoman": roman,
    "upperRoman": lambda number: roman(number).upper(),
    "lowerLetter": letters,
    "upperLetter": lambda number: letters(number).upper(),
    "decimalZero": lambda number: f"{number:02}",
}


class Numbering:
    """Counts the entries of all lists of a document, in reading order."""

    def __init__(self, root: etree._Element | None) -> None:
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._restarted: set[tuple[str, int]] = set()
        if root is not None:
            abstract = _abstract_lists(root)
            for node in root.iterfind(f"{W}num"):
                abstract_id = value_of(node, "abstractNumId") or ""
                self._lists[node.get(f"{W}numId", "")] = _list(node, abstract_id, abstract)

    def next_marker(self, list_id: str, depth: int) -> str:
        """Count an entry and give its marker: `3.`, `2.1`, `b)`, `-`; empty where none is shown."""
        entries = self._lists.get(list_id)
        if entries is None:
            return ""
        level = entries.levels.get(depth, _Level())
        counts = self._counts.setdefault(entries.abstract_id, {})
        if depth in entries.restarts and (list_id, depth) not in self._restarted:
            self._restarted.add((list_id, depth))
            counts.pop(depth, None)
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.shape == "bullet":
            return _BULLET
        if level.shape == "none":
            return ""
        return _PLACEHOLDER.sub(
            lambda found: _shown(entries.levels, counts, int(found[1]) - 1), level.pattern
        ).strip()


def _shown(levels: Mapping[int, _Level], counts: Mapping[int, int], depth: int) -> str:
    level = levels.get(depth, _Level())
    number = counts.get(depth, level.start)
    return _SHAPES.get(level.shape, str)(number)


def _level(node: etree._Element) -> _Level:
    return _Level(
        start=number_of(value_of(node, "start"), 1),
        shape=value_of(node, "numFmt") or "decimal",
        pattern=value_of(node, "lvlText") or "",
    )


def _abstract_lists(root: etree._Element) -> dict[str, dict[int, _Level]]:
    """The levels of each abstract list; a list style keeps them in another abstract list."""
    found: dict[str, dict[int, _Level]] = {}
    by_style: dict[str, dict[int, _Level]] = {}
    links: dict[str, str] = {}
    for node in root.iterfind(f"{W}abstractNum"):
        levels = {
            number_of(level.get(f"{W}ilvl")): _level(level) for level in node.iterfind(f"{W}lvl")
        }
        abstract_id = node.get(f"{W}abstractNumId", "")
        found[abstract_id] = levels
        if (style := value_of(node, "styleLink")) is not None:
            by_style[style] = levels
        if (link := value_of(node, "numStyleLink")) is not None:
            links[abstract_id] = link
    for abstract_id, style in links.items():
        found[abstract_id] = by_style.get(style, found[abstract_id])
    return found


def _list(
    node: etree._Element, abstract_id: str, abstract: Mapping[str, dict[int, _Level]]
) -> _List:
    levels = dict(abstract.get(abstract_id, {}))
    restarts: set[int] = set()
    for override in node.iterfind(f"{W}lvlOverride"):
        depth = number_of(override.get(f"{W}ilvl"))
        own = override.find(f"{W}lvl")
        if own is not None:
            levels[depth] = _level(own)
        start = value_of(override, "startOverride")
        if start is not None:
            levels[depth] = replace(levels.get(depth, _Level()), start=number_of(start, 1))
            restarts.add(depth)
    return _List(abstract_id, levels, frozenset(restarts))
