"""JSON Lines: one record a line, each with its line number; bad lines are named and left out."""

from __future__ import annotations

import json
from typing import ClassVar

from knowledge.extraction.base import (
    Coverage,
    Extracted,
    ExtractionError,
    Extractor,
    Fault,
    Limits,
    Source,
)
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import Decoded, decode
from knowledge.extraction.flattening import Flattener, Value

_NAMED_LINES = 10  # of the bad ones; the rest is counted


class JsonlExtractor(Extractor):
    """JSON Lines, also known as NDJSON."""

    mime_types: ClassVar[frozenset[str]] = frozenset(
        {"application/jsonl", "application/x-ndjson", "application/jsonlines"}
    )
    suffixes: ClassVar[frozenset[str]] = frozenset({".jsonl", ".ndjson", ".jsonlines"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        return extract_lines(decode(source.stream.read(), source.filename), limits)


def extract_lines(decoded: Decoded, limits: Limits) -> Extracted:
    """The records of decoded JSON Lines."""
    builder = TextBuilder(limits)
    for warning in decoded.warnings:
        builder.warn(warning)
    records: list[Value] = []
    places: list[int | None] = []
    bad: list[int] = []
    for number, line in enumerate(decoded.text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_parse(line))
            places.append(number)
        except (ValueError, RecursionError):
            bad.append(number)
    if bad and not records:
        raise ExtractionError(
            Fault.CORRUPT,
            "No line of the file is valid JSON. If it is plain text, rename it to .txt and "
            "upload it again.",
        )
    _check_rows(len(records), limits)
    if bad:
        builder.warn(_bad_lines(bad))
    Flattener(builder, limits).add_records(records, places)
    found = len(records) + len(bad)
    return builder.finish(Coverage("records", found, len(records)))


def looks_like_lines(text: str) -> bool:
    """Whether each of the first lines is a JSON object or array of its own."""
    lines = [line for line in text[:100_000].split("\n")[:20] if line.strip()]
    if len(lines) < 2:
        return False
    try:
        return all(isinstance(json.loads(line), dict | list) for line in lines)
    except (ValueError, RecursionError):
        return False


def _parse(line: str) -> Value:
    value: Value = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
    return value


def _check_rows(count: int, limits: Limits) -> None:
    if count > limits.max_rows:
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"The file has {count:,} records; at most {limits.max_rows:,} are read. "
            "Split it into smaller files.",
        )


def _bad_lines(numbers: list[int]) -> str:
    named = ", ".join(map(str, numbers[:_NAMED_LINES]))
    more = len(numbers) - _NAMED_LINES
    rest = f" and {more:,} more" if more > 0 else ""
    noun = "Line" if len(numbers) == 1 else "Lines"
    verb = "is" if len(numbers) == 1 else "are"
    return f"{noun} {named}{rest} {verb} not valid JSON and left out."
