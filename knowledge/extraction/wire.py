"""The result of an extraction as JSON, between the child process and its parent."""

from __future__ import annotations

import json
from typing import Any

from knowledge.extraction.base import (
    Block,
    BlockKind,
    Coverage,
    Extracted,
    ExtractionError,
    Fault,
)


def dump_extracted(extracted: Extracted) -> bytes:
    """A compact form: table headers and sheet names, which repeat on every row, are stored once."""
    shared: dict[str, int] = {}

    def place(text: str | None) -> int | None:
        return None if text is None else shared.setdefault(text, len(shared))

    blocks = [
        [
            block.kind.value,
            block.start,
            block.end,
            block.level,
            block.page,
            place(block.sheet),
            block.row,
            block.line,
            place(block.table_header or None),
        ]
        for block in extracted.blocks
    ]
    coverage = extracted.coverage
    return _dump(
        {
            "text": extracted.text,
            "blocks": blocks,
            "shared": list(shared),
            "coverage": [coverage.unit, coverage.found, coverage.indexed],
            "title": extracted.title,
            "warnings": list(extracted.warnings),
            "metadata": dict(extracted.metadata),
        }
    )


def dump_error(error: ExtractionError) -> bytes:
    """The form of a refusal."""
    return _dump({"fault": error.fault.value, "message": error.message})


def load_result(data: bytes) -> Extracted:
    """The extracted value, or the refusal raised. Raises `ValueError` when the child wrote neither."""
    try:
        result = json.loads(data)
        if "fault" in result:
            raise ExtractionError(Fault(result["fault"]), str(result["message"]))
        return _load_extracted(result)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError("not the result of an extraction") from error


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _load_extracted(result: dict[str, Any]) -> Extracted:
    shared: list[str] = result["shared"]
    unit, found, indexed = result["coverage"]
    return Extracted(
        text=result["text"],
        blocks=tuple(_load_block(fields, shared) for fields in result["blocks"]),
        coverage=Coverage(unit, found, indexed),
        title=result["title"],
        warnings=tuple(result["warnings"]),
        metadata=result["metadata"],
    )


def _load_block(fields: list[Any], shared: list[str]) -> Block:
    kind, start, end, level, page, sheet, row, line, header = fields
    return Block(
        kind=BlockKind(kind),
        start=start,
        end=end,
        level=level,
        page=page,
        sheet=None if sheet is None else shared[sheet],
        row=row,
        line=line,
        table_header="" if header is None else shared[header],
    )
