"""The fields that filters and facets speak of, and where each stands in `c` (chunk) and `d` (document)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a field holds, which decides what its operators mean."""

    TEXT = "text"
    TIME = "time"
    LIST = "list"  # of texts
    METADATA = "metadata"  # whatever JSON stands at the path


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `sql` is never null; for metadata it is the whole object and `path` leads into it."""

    name: str
    kind: Kind
    sql: str
    path: tuple[str, ...] = ()

    @property
    def on_chunk(self) -> bool:
        """Whether passages of one document may differ in it."""
        return self.sql.startswith("c.")

    @property
    def jsonpath(self) -> str:
        """The path into the metadata. In its (lax) mode, a list on the way stands for its entries."""
        return "$" + "".join(f".{json.dumps(key, ensure_ascii=False)}" for key in self.path)


def _time(name: str) -> str:
    """The source's time, else ours. As in the table's indexes, which serve this expression alone; and no
    COALESCE, for PostgreSQL lets no index answer one under row-level security."""
    return f"CASE WHEN d.source_{name} IS NULL THEN d.{name} ELSE d.source_{name} END"


_FIELDS = {
    field.name: field
    for field in (
        Field("title", Kind.TEXT, "d.title"),
        Field("source", Kind.TEXT, "d.source"),
        Field("source_uri", Kind.TEXT, "d.source_uri"),
        Field("external_id", Kind.TEXT, "d.external_id"),
        Field("content_type", Kind.TEXT, "d.content_type"),
        Field("language", Kind.TEXT, "c.language"),
        Field("author", Kind.TEXT, "d.author"),
        Field("created_at", Kind.TIME, _time("created_at")),
        Field("updated_at", Kind.TIME, _time("updated_at")),
        Field("heading", Kind.LIST, "c.heading_path"),
        Field("breadcrumbs", Kind.LIST, "d.breadcrumbs"),
    )
}
FIELDS = (*_FIELDS, "metadata.<path>")


def find_field(name: object) -> Field | None:
    """The field of this name; of metadata every path is one. None if there is none."""
    if not isinstance(name, str):
        return None
    if name in _FIELDS:
        return _FIELDS[name]
    kind, _, rest = name.partition(".")
    path = tuple(rest.split("."))
    if kind != "metadata" or not all(path) or not is_storable(name):
        return None
    return Field(name, Kind.METADATA, "d.metadata", path)


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text: no U+0000 and no half of a surrogate pair."""
    return not any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in text)
