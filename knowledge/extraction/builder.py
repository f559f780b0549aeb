"""Builds the clean text of a file and its blocks side by side, so that offsets are right by construction."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import regex

from knowledge.extraction.base import (
    Block,
    BlockKind,
    Coverage,
    Extracted,
    ExtractionError,
    Fault,
    Limits,
)

# Invisible marks that split or hide words: soft hyphen, zero-width, bidi controls, byte order mark.
# U+200C/U+200D stay: they carry meaning in Persian, Hindi and emoji.
_INVISIBLE = regex.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_CONTROL = regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_LONE_SURROGATE = regex.compile("[\ud800-\udfff]")
# Anything that `clean` would change, but for composition: most text has none of it.
_UNCLEAN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028\u202a-\u202e\u2060-\u2064"
    "\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_BLANKS = regex.compile(r"[^\S\n]+")
_BLANK_LINES = regex.compile(r"\n{3,}")


def clean(text: str) -> str:
    """Text that PostgreSQL stores and a reader sees: NFC, no controls, no invisible marks, \\n line ends."""
    if not _UNCLEAN.search(text):
        return text if text.isascii() else unicodedata.normalize("NFC", text)
    text = (
        text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\x0c", "\n")
    )
    text = _INVISIBLE.sub("", _CONTROL.sub(" ", text))
    text = _LONE_SURROGATE.sub("\ufffd", text)
    return unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    """Clean text with every run of white space, line ends included, as one blank."""
    return " ".join(clean(text).split())


def table_line(cells: Sequence[str]) -> str:
    """One Markdown table line; pipes in cells are escaped, line ends become blanks."""
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"


class TextBuilder:
    """Collects blocks in reading order; `finish` gives the `Extracted` value.

    Blocks are set apart by an empty line, except that table rows and list items follow on the next
    line. Blank input adds nothing. Location arguments are those of `Block`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._warnings: list[str] = []
        self._table_header = ""

    def heading(
        self, text: str, level: int, *, page: int | None = None, line: int | None = None
    ) -> None:
        """A heading of `level` 1..6, on one line."""
        self._add(
            BlockKind.HEADING, one_line(text), level=min(max(level, 1), 6), page=page, line=line
        )

    def paragraph(
        self,
        text: str,
        *,
        page: int | None = None,
        sheet: str | None = None,
        line: int | None = None,
    ) -> None:
        """Running text; its own line ends are kept, trailing blanks and runs of blanks are not."""
        lines = [_BLANKS.sub(" ", part).strip() for part in clean(text).split("\n")]
        body = _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip("\n")
        self._add(BlockKind.PARAGRAPH, body, page=page, sheet=sheet, line=line)

    def list_item(
        self,
        text: str,
        *,
        depth: int = 0,
        marker: str = "-",
        page: int | None = None,
        line: int | None = None,
    ) -> None:
        """One list entry, written `- text` (or `1. text`), indented by two blanks a level."""
        body = one_line(text)
        if body:
            self._add(BlockKind.LIST_ITEM, f"{'  ' * depth}{marker} {body}", page=page, line=line)

    def code(self, text: str, *, page: int | None = None, line: int | None = None) -> None:
        """Verbatim text: indentation is kept."""
        body = "\n".join(part.rstrip() for part in clean(text).split("\n")).strip("\n")
        self._add(BlockKind.CODE, body, page=page, line=line)

    def table_header(
        self,
        cells: Sequence[str],
        *,
        page: int | None = None,
        sheet: str | None = None,
        row: int | None = None,
        line: int | None = None,
    ) -> None:
        """Starts a table: the header line and the Markdown rule under it."""
        header = table_line(cells)
        self._table_header = header + "\n|" + " --- |" * len(cells)
        self._add(
            BlockKind.TABLE_HEADER, self._table_header, page=page, sheet=sheet, row=row, line=line
        )

    def table_row(
        self,
        cells: Sequence[str],
        *,
        page: int | None = None,
        sheet: str | None = None,
        row: int | None = None,
        line: int | None = None,
    ) -> None:
        """A row of the table started last; a row of blanks adds nothing."""
        if any(cell.strip() for cell in cells):
            self._add(
                BlockKind.TABLE_ROW,
                table_line(cells),
                page=page,
                sheet=sheet,
                row=row,
                line=line,
                table_header=self._table_header,
            )

    def end_table(self) -> None:
        """Forgets the header: rows that follow have none."""
        self._table_header = ""

    def warn(self, message: str) -> None:
        """Something was left out; said once however often it happens."""
        if message not in self._warnings:
            self._warnings.append(message)

    @property
    def block_count(self) -> int:
        """How many blocks there are so far."""
        return len(self._blocks)

    def finish(
        self, coverage: Coverage, *, title: str = "", metadata: dict[str, str] | None = None
    ) -> Extracted:
        """The extracted value. A file without any text is returned as such; ingestion refuses it."""
        facts = {one_line(key): one_line(value) for key, value in (metadata or {}).items()}
        return Extracted(
            text="".join(self._parts),
            blocks=tuple(self._blocks),
            coverage=coverage,
            title=one_line(title)[:500],
            warnings=tuple(self._warnings),
            metadata={key: value for key, value in facts.items() if key and value},
        )

    def _add(self, kind: BlockKind, text: str, **location: object) -> None:
        if not text.strip():
            return
        separator = self._separator(kind)
        start = self._length + len(separator)
        self._length = start + len(text)
        if self._length > self._limits.max_text_chars:
            raise ExtractionError(
                Fault.TOO_LARGE,
                f"The file holds more than {self._limits.max_text_chars:,} characters of text. "
                "Split it into smaller files.",
            )
        self._parts += (separator, text)
        self._blocks.append(Block(kind, start, self._length, **location))  # type: ignore[arg-type]

    def _separator(self, kind: BlockKind) -> str:
        if not self._blocks:
            return ""
        last = self._blocks[-1].kind
        rows = {BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW}
        if kind is BlockKind.TABLE_ROW and last in rows:
            return "\n"
        if kind is BlockKind.LIST_ITEM and last is BlockKind.LIST_ITEM:
            return "\n"
        return "\n\n"
