"""The extraction contract: bytes of one file in, clean text with its structure out.

Extractors run in a child process (see `sandbox.py`): they know nothing of Django or the database.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import BinaryIO, ClassVar

from config.errors import AppError


class Fault(StrEnum):
    """Why a file could not be read. The value is part of the API (`error.code`)."""

    ENCRYPTED = "encrypted"
    CORRUPT = "corrupt"
    EMPTY = "empty"
    NO_TEXT = "no_text"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too_large"
    TIMEOUT = "timeout"


class ExtractionError(AppError):
    """A file cannot be read. The message says what is wrong and what to do now."""

    http_status = 422
    title = "The file cannot be read"

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.code = fault.value


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one extraction. Crossing one raises `ExtractionError(Fault.TOO_LARGE)`."""

    max_bytes: int = 200 * 1024 * 1024  # of the file itself
    max_expanded_bytes: int = 1024 * 1024 * 1024  # of a zip-based file, unpacked
    max_expansion: int = 200  # unpacked size over packed size, for parts beyond 10 MB
    max_text_chars: int = 30_000_000
    max_pages: int = 10_000
    max_rows: int = 1_000_000
    max_depth: int = 200  # nesting of JSON, XML, HTML, MIME
    max_memory_bytes: int = 3 * 1024 * 1024 * 1024  # of the child process
    timeout_s: float = 300.0


class BlockKind(StrEnum):
    """What a block is. The chunker keeps headings with what follows and repeats table headers."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_HEADER = "table_header"
    TABLE_ROW = "table_row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the text: `text[start:end]`, in order, never overlapping.

    `level` is 1..6 for headings, 0 otherwise. `page` counts from 1 (PDF page, slide); `sheet` is a
    sheet's name; `row` is the row number as the source program shows it; `line` counts from 1.
    `table_header` is, for a table row, the header to repeat when a chunk starts at this row.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    page: int | None = None
    sheet: str | None = None
    row: int | None = None
    line: int | None = None
    table_header: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the source became text: of `found` units, `indexed` have text.

    `unit` is the plural noun of the format: pages, slides, rows, paragraphs, lines, records, parts.
    """

    unit: str
    found: int
    indexed: int


@dataclass(frozen=True, slots=True)
class Extracted:
    """The whole outcome for one file. A value; extractors keep no state.

    `metadata` holds flat facts the file states of itself (front matter, mail headers); keys
    `author`, `created_at` and `updated_at` (ISO 8601) are understood by ingestion.
    """

    text: str
    blocks: tuple[Block, ...]
    coverage: Coverage
    title: str = ""
    warnings: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read: a seekable binary stream, its name, and its size in bytes."""

    stream: BinaryIO
    filename: str
    size: int


class Extractor(ABC):
    """One file format. Subclasses are stateless and named `PdfExtractor`, `DocxExtractor`, …"""

    mime_types: ClassVar[frozenset[str]]
    suffixes: ClassVar[frozenset[str]]  # lower case with the dot

    @abstractmethod
    def extract(self, source: Source, limits: Limits) -> Extracted:
        """Read the file. Raises `ExtractionError`; any other exception is reported as corrupt."""
