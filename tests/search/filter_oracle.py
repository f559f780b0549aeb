"""The filter language in plain Python, and random passages and filters to compare the SQL with.

Written from docs/search.md, not from the SQL: it shares no code with `search.retrieval`.
"""

from __future__ import annotations

import operator as compare
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Passage = Mapping[str, Any]
Tree = dict[str, Any]

TEXTS = ("title", "source", "source_uri", "external_id", "content_type", "author", "language")
TIMES = ("created_at", "updated_at")
LISTS = ("heading", "breadcrumbs")
PATHS = ("a", "b", "a.b", "a.b.c", "it's", 'q"', "键", "a.0", "n%")
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": compare.gt, "gte": compare.ge, "lt": compare.lt, "lte": compare.le,
}  # fmt: skip
ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)?)?",
    re.ASCII,
)


def matches(tree: Tree, passage: Passage) -> bool:
    """Whether the passage passes the filter."""
    if "and" in tree:
        return all(matches(part, passage) for part in tree["and"])
    if "or" in tree:
        return any(matches(part, passage) for part in tree["or"])
    if "not" in tree:
        return not matches(tree["not"], passage)
    return _leaf_matches(tree, passage)


def _leaf_matches(tree: Tree, passage: Passage) -> bool:
    field, op, value = tree["field"], tree["op"], tree.get("value", True)
    if op == "ne":
        return not _leaf_matches({"field": field, "op": "eq", "value": value}, passage)
    if op in {"in", "not_in"}:
        each = ({"field": field, "op": "eq", "value": item} for item in value)
        found = any(_leaf_matches(leaf, passage) for leaf in each)
        return bool(found == (op == "in"))
    entries = list(_entries(field, passage))
    if op == "exists":
        return bool(any(entry is not None and entry != "" for entry in entries) == value)
    if field in TIMES:
        entries, value = [_time(entry) for entry in entries], _time(value)
    typed = field.startswith("metadata.")
    return any(_holds(op, entry, value, typed=typed) for entry in entries)


def _entries(field: str, passage: Passage) -> Iterator[Any]:
    if field.startswith("metadata."):
        yield from _walk([passage["metadata"]], field.split(".")[1:])
    elif field in LISTS:
        yield from passage[field]
    elif field in TIMES:
        yield passage[f"source_{field}"] or passage[field]
    else:
        yield passage[field]


def _walk(values: Sequence[Any], path: Sequence[str]) -> list[Any]:
    """What stands at the path; a list on the way, and at its end, stands for its entries."""
    for key in path:
        values = [value[key] for value in _flat(values) if isinstance(value, dict) and key in value]
    return _flat(values)


def _flat(values: Sequence[Any]) -> list[Any]:
    return [entry for value in values for entry in (value if isinstance(value, list) else [value])]


def _holds(op: str, entry: Any, value: Any, *, typed: bool) -> bool:
    if _kind(entry) != _kind(value):
        return False
    if op == "eq":
        return bool(_plain(entry) == _plain(value))
    if op == "contains":
        return bool(value.casefold() in entry.casefold())
    if op == "starts_with":
        return bool(entry.casefold().startswith(value.casefold()))
    if typed and isinstance(entry, str) and _time(entry) and _time(value):
        entry, value = _time(entry), _time(value)
    return ORDERS[op](_plain(entry), _plain(value))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "text", datetime: "time"}.get(type(value), "none")


def _plain(value: Any) -> Any:
    # Numbers are the decimals that were written.
    return Decimal(repr(value)) if isinstance(value, float) else value


def _time(text: str) -> datetime | None:
    if not ISO.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# What is drawn: few different letters, so that values meet; those that are special to LIKE, JSON or
# jsonpath, and those whose upper and lower case are odd.

_LETTERS = "aAbB%_\\'\" \tßſSİiıIσςΣéÉe\u0301ﬁ中文檔🙂🇩.0-$@?"
_WORDS = (
    "", "a", "A", "%", "_", "\\", "'", '"', "a%b", "straße", "STRASSE", "notion", "Notion", "草稿", "草稿二",
    "🙂", "7", "7.0", "true", "null", "2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T01:00:00+01:00",
    "2026-02-30", "2026-01-31 00:00:00.5", "2026-02", "2025-12-31T23:59", "$.a", "\ue000", "\U0001f642z",
)  # fmt: skip
texts = st.one_of(st.sampled_from(_WORDS), st.text(_LETTERS, max_size=4))
_moments = st.one_of(
    st.timedeltas(timedelta(0), timedelta(days=33)).map(
        lambda since: datetime(2025, 12, 31, tzinfo=UTC) + since
    ),
    st.sampled_from([datetime(2026, 1, 31, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)]),
)
moments = _moments.map(datetime.isoformat)
dates = _moments.map(lambda moment: moment.date().isoformat())
zoned = st.tuples(_moments.filter(lambda moment: moment.year > 1), st.integers(-14, 14)).map(
    lambda pair: (
        f"{(pair[0] + timedelta(hours=pair[1])).replace(tzinfo=None).isoformat()}{pair[1]:+03d}:00"
    )
)
numbers = st.one_of(
    st.sampled_from([0, 7, 7.0, -1, 0.1, 1e16, 1e23, 10**23, 2**53 + 1, 1e-7]),
    st.integers(-3, 9),
    st.floats(allow_nan=False, allow_infinity=False),
)
scalars = st.one_of(texts, texts, numbers, st.booleans(), dates, moments, zoned)
_keys = st.sampled_from(["a", "b", "c", "it's", 'q"', "键", "0", "n%"])
_json = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
passages = st.fixed_dictionaries({
    **dict.fromkeys(TEXTS, texts),
    **dict.fromkeys(LISTS, st.lists(texts, max_size=3)),
    **dict.fromkeys(TIMES, moments),
    **{f"source_{name}": moments | st.none() for name in TIMES},
    "metadata": st.dictionaries(_keys, _json, max_size=4),
})  # fmt: skip


def _leaf(
    field: str, ops: Sequence[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Tree]:
    def with_value(op: str) -> st.SearchStrategy[Any]:
        if op == "exists":
            return st.booleans()
        return st.lists(values, max_size=3) if op in {"in", "not_in"} else values

    return st.sampled_from(ops).flatmap(
        lambda op: st.fixed_dictionaries({
            "field": st.just(field), "op": st.just(op), "value": with_value(op),
        })
    )  # fmt: skip


_SAME = ("eq", "ne", "in", "not_in", "exists")
_WORDED = ("contains", "starts_with")
leaves = st.one_of(
    *(_leaf(field, (*_SAME, *_WORDED, *ORDERS), texts) for field in (*TEXTS, *LISTS)),
    *(_leaf(field, (*_SAME, *ORDERS), moments | dates | zoned) for field in TIMES),
    *(_leaf(f"metadata.{path}", _SAME, scalars) for path in PATHS),
    *(_leaf(f"metadata.{path}", (*_WORDED, *ORDERS), texts | dates | zoned) for path in PATHS),
    *(_leaf(f"metadata.{path}", tuple(ORDERS), numbers) for path in PATHS),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)
