"""The facts at the top of a Markdown file, between `---` (YAML) or `+++` (TOML) lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

import yaml

from knowledge.extraction.dates import iso_date

_BLOCK = re.compile(
    r"\A\n*(?P<mark>---|\+\+\+)[ \t]*\n(?P<facts>.*?\n)??(?P<end>(?P=mark)|\.\.\.)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_TITLES = ("title", "name")
_RENAMED = {
    "authors": "author", "date": "created_at", "created": "created_at", "published": "created_at",
    "updated": "updated_at", "lastmod": "updated_at", "last_modified": "updated_at",
    "modified": "updated_at",
}  # fmt: skip
_DATES = frozenset({"created_at", "updated_at"})


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The stated facts, flat, and how many lines of the file they take."""

    title: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    lines: int = 0


def read_front_matter(text: str) -> FrontMatter:
    """The front matter of `text`; one without lines when there is none or it is not valid."""
    match = _BLOCK.match(text)
    if not match or (match["end"] == "..." and match["mark"] != "---"):
        return FrontMatter()
    try:
        facts = _parse(match["facts"] or "", toml=match["mark"] == "+++")
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return FrontMatter()
    if facts is not None and not isinstance(facts, Mapping):
        return FrontMatter()
    flat = dict(_flatten(facts or {}, ""))
    title = next((flat.pop(name) for name in _TITLES if name in flat), "")
    return FrontMatter(title, _rename(flat), match.group().count("\n"))


def _parse(facts: str, *, toml: bool) -> object:
    return tomllib.loads(facts) if toml else yaml.safe_load(facts)


def _flatten(facts: Mapping[object, object], prefix: str) -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat += _flatten(value, f"{name}.") if prefix.count(".") < 5 else []
        else:
            flat.append((name, _shown(value)))
    return [(name, value) for name, value in flat if value]


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, (_shown(item) for item in value if item is not value)))
    if isinstance(value, Mapping):
        return str(value.get("name") or "")
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _rename(flat: Mapping[str, str]) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for name, value in flat.items():
        key = _RENAMED.get(name.lower(), name)
        known = iso_date(value) if key in _DATES else value
        # A date that cannot be told stays under its own name, as a plain fact.
        metadata.setdefault(key if known else name, known or value)
    return metadata
