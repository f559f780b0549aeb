"""JSON → readable text: `path: value` lines, and tables where a list holds records alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar

from knowledge.extraction.base import Coverage, Extracted, Extractor, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import Decoded, decode
from knowledge.extraction.flattening import Flattener, Value, too_deep
from knowledge.extraction.jsonl import extract_lines, looks_like_lines
from knowledge.extraction.text import extract_plain

_TITLES = ("title", "name", "label")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class JsonExtractor(Extractor):
    """One JSON document. What is not valid JSON is read as plain text, with a warning."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"application/json", "text/json"})
    suffixes: ClassVar[frozenset[str]] = frozenset({".json", ".geojson", ".jsonld", ".webmanifest"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        if json_depth(decoded.text) > limits.max_depth:
            raise too_deep(limits)
        try:
            value = parse_json(decoded.text)
        except ValueError as error:
            return _read_invalid(decoded, error, limits)
        return _read_value(value, decoded, limits)


def parse_json(text: str) -> Value:
    """The value with numbers as written: `1.10` stays `1.10`. Raises `ValueError`."""
    value: Value = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    return value


def json_depth(text: str) -> int:
    """How deep brackets nest, found without recursion."""
    depth = deepest = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _read_value(value: Value, decoded: Decoded, limits: Limits) -> Extracted:
    builder = TextBuilder(limits)
    for warning in decoded.warnings:
        builder.warn(warning)
    flattener = Flattener(builder, limits)
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        flattener.add_records(value)
    else:
        flattener.add(value)
    title = ""
    if isinstance(value, Mapping):
        stated = (value.get(name) for name in _TITLES)
        title = next((text for text in stated if isinstance(text, str)), "")
    return builder.finish(Coverage("values", flattener.shown, flattener.shown), title=title)


def _read_invalid(decoded: Decoded, error: ValueError, limits: Limits) -> Extracted:
    if looks_like_lines(decoded.text):
        return extract_lines(decoded, limits)
    where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
    warning = f"The file is not valid JSON{where}; it is read as plain text."
    return extract_plain(decoded.text, limits, warnings=(*decoded.warnings, warning))
