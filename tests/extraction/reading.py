"""Reads bytes with one extractor or with the whole worker, and looks at the result."""

from __future__ import annotations

import io
from collections.abc import Iterator

from knowledge.extraction.base import Block, BlockKind, Extracted, Limits, Source
from knowledge.extraction.registry import load_extractor
from knowledge.extraction.worker import extract_source


def read(
    name: str, data: bytes | str, filename: str = "case.txt", limits: Limits | None = None
) -> Extracted:
    """The outcome of one extractor, and a check that its blocks are sound."""
    raw = data.encode() if isinstance(data, str) else data
    source = Source(io.BytesIO(raw), filename, len(raw))
    extracted = load_extractor(name).extract(source, limits or Limits())
    check_blocks(extracted)
    return extracted


def read_detected(data: bytes | str, filename: str, limits: Limits | None = None) -> Extracted:
    """The outcome with detection, in this process."""
    raw = data.encode() if isinstance(data, str) else data
    extracted = extract_source(Source(io.BytesIO(raw), filename, len(raw)), limits or Limits())
    check_blocks(extracted)
    return extracted


def check_blocks(extracted: Extracted) -> None:
    """Blocks are in order, apart, filled, and inside the text."""
    end = 0
    for block in extracted.blocks:
        assert end <= block.start < block.end <= len(extracted.text)
        assert extracted.text[block.start : block.end].strip()
        end = block.end


def texts(extracted: Extracted, *kinds: BlockKind) -> list[str]:
    """The texts of the blocks of these kinds, of all blocks without any."""
    return [
        extracted.text[block.start : block.end]
        for block in extracted.blocks
        if not kinds or block.kind in kinds
    ]


def block_of(extracted: Extracted, text: str) -> Block:
    """The first block that holds the text."""
    return next(
        block for block in extracted.blocks if text in extracted.text[block.start : block.end]
    )


def rows(extracted: Extracted) -> Iterator[dict[str, str]]:
    """Table rows as a reader sees them: column name → cell."""
    for block in extracted.blocks:
        if block.kind is BlockKind.TABLE_ROW:
            header = split_row(block.table_header.split("\n")[0])
            cells = split_row(extracted.text[block.start : block.end])
            yield dict(zip(header, cells, strict=False)) if header else {"": " ".join(cells)}


def split_row(line: str) -> list[str]:
    """The cells of a Markdown table line."""
    cells = line.strip().strip("|").replace("\\|", "\x00").split("|") if line else []
    return [cell.replace("\x00", "|").strip() for cell in cells]


def row_of(extracted: Extracted, text: str) -> dict[str, str]:
    """The first table row with a cell that holds the text."""
    return next(row for row in rows(extracted) if any(text in cell for cell in row.values()))
