"""Fills passages with pieces of a section, evenly, each with the end of the one before it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from knowledge.extraction.base import Block, BlockKind
from knowledge.services.sections import Section
from knowledge.services.splitting import Piece, Splitter, word_start

_NEVER_REPEATED = frozenset({BlockKind.HEADING, BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW})
_KEPT_WITH_NEXT = frozenset({BlockKind.HEADING, BlockKind.TABLE_HEADER})
_EARLY = 0.6  # a passage this full ends at a paragraph rather than within the next one


@dataclass(frozen=True, slots=True)
class Draft:
    """A passage to be; `block` is the one it starts in, `header` the table header it repeats."""

    start: int
    end: int
    section: Section
    block: Block
    room: int
    header: str = ""
    tokens: int = 0

    def content(self, text: str) -> str:
        """The passage as it is stored."""
        body = text[self.start : self.end]
        return f"{self.header}\n{body}" if self.header else body


class Packer:
    """Packs the sections of one text one after the other."""

    def __init__(self, text: str, splitter: Splitter, overlap: int) -> None:
        self._text = text
        self._splitter = splitter
        self._overlap = overlap
        self._header_tokens: dict[str, int] = {"": 0}

    def pack(self, section: Section, room: int) -> list[Draft]:
        """The passages of a section. Their token counts are estimates until `fitted`."""
        last = section.blocks[-1].end
        pieces: list[Piece] = []
        for piece in self._splitter.pieces(section.blocks, last, room):
            limit = room - self.header_tokens(piece.block, room)
            pieces += [piece] if piece.tokens <= limit else self._splitter.refine(piece, limit)
        filling = _Filling(self, section, room, sum(piece.tokens for piece in pieces))
        for piece in pieces:
            filling.add(piece)
        filling.close()
        return filling.drafts

    def fitted(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts with exact counts, those that turn out too long cut in two until they fit."""
        done: list[Draft] = []
        waiting = list(drafts)
        while waiting:
            counts = self._splitter.count(draft.content(self._text) for draft in waiting)
            longer: list[Draft] = []
            for draft, tokens in zip(waiting, counts, strict=True):
                halves = self._halved(draft) if tokens > draft.room else []
                longer += halves
                if not halves:
                    done.append(replace(draft, tokens=tokens))
            waiting = longer
        return sorted(done, key=lambda draft: (draft.start, draft.end))

    def header_tokens(self, block: Block, room: int) -> int:
        """What repeating the header of a row costs; nothing where half the room would not hold it."""
        header = self.header_of(block, room)
        return self._header_tokens[header]

    def header_of(self, block: Block, room: int) -> str:
        """The header that a passage starting in this block repeats."""
        header = block.table_header if block.kind is BlockKind.TABLE_ROW else ""
        if header not in self._header_tokens:
            self._header_tokens[header] = self._splitter.count([header + "\n"])[0]
        return header if self._header_tokens[header] <= room // 2 else ""

    def refine(self, piece: Piece, room: int) -> list[Piece]:
        """The piece cut until each part fits into `room`."""
        return self._splitter.refine(piece, room)

    def draft(self, section: Section, pieces: Sequence[Piece], room: int) -> Draft | None:
        """A passage of pieces; none when they are blank."""
        first, last = pieces[0], pieces[-1]
        body = self._text[first.start : last.end].rstrip()
        if not body.strip():
            return None
        header = self.header_of(first.block, room)
        return Draft(first.start, first.start + len(body), section, first.block, room, header)

    def tail(self, pieces: Sequence[Piece], room: int) -> list[Piece]:
        """What the next passage repeats: whole sentences from the end, or the last words of one."""
        allowed = min(self._overlap, room)
        taken: list[Piece] = []
        for piece in reversed(pieces):
            if piece.block.kind in _NEVER_REPEATED or (taken and piece is pieces[0]):
                break
            if piece.tokens > allowed:
                return taken or self._last_words(piece, allowed)
            taken.insert(0, piece)
            allowed -= piece.tokens
        return taken if len(taken) < len(pieces) else []

    def _last_words(self, piece: Piece, allowed: int) -> list[Piece]:
        share = allowed / max(piece.tokens, 1)
        start = word_start(
            self._text, piece.end - int((piece.end - piece.start) * share), piece.end
        )
        if allowed <= 0 or start >= piece.end:
            return []
        return [Piece(start, piece.end, piece.block, tokens=allowed)]

    def _halved(self, draft: Draft) -> list[Draft]:
        """Two drafts cut at the line end or blank next to the middle, or in the middle itself."""
        if draft.end - draft.start < 2:
            return []
        middle = (draft.start + draft.end) // 2
        cut = middle
        for mark in ("\n", " "):
            found = self._text.rfind(mark, draft.start + 1, middle + 1)
            if found > (draft.start + middle) // 2:
                cut = found
                break
        after = bisect_right(draft.section.blocks, cut, key=lambda block: block.start)
        block = draft.section.blocks[max(after - 1, 0)]
        left, right = self._text[draft.start : cut], self._text[cut : draft.end]
        start = cut + len(right) - len(right.lstrip())
        halves = []
        if left.strip():
            halves.append(replace(draft, end=draft.start + len(left.rstrip())))
        if right.strip():
            header = self.header_of(block, draft.room)
            halves.append(replace(draft, start=start, block=block, header=header))
        return halves


class _Filling:
    """The passage being filled. It aims at passages of even length rather than at a short last one."""

    def __init__(self, packer: Packer, section: Section, room: int, total: int) -> None:
        self.drafts: list[Draft] = []
        self._packer = packer
        self._section = section
        self._room = room
        self._remaining = total
        self._pieces: list[Piece] = []
        self._fresh = 0  # pieces that are not repeated from the passage before
        self._used = 0
        self._goal = 0.0

    def add(self, piece: Piece) -> None:
        """Put a piece into this passage or into a new one."""
        if self._fresh and self._is_full_before(piece):
            if self._has_only_headings():
                self._add_parts(piece)
                return
            self.close()
        if not self._fresh:
            self._begin(piece)
        self._take(piece)

    def close(self) -> None:
        """End the passage; the next one begins with its last sentences."""
        if not self._fresh:
            return
        draft = self._packer.draft(self._section, self._pieces, self._room)
        if draft:
            self.drafts.append(draft)
        self._pieces = self._packer.tail(self._pieces, self._room)
        self._used = sum(piece.tokens for piece in self._pieces)
        self._fresh = 0

    def _begin(self, piece: Piece) -> None:
        """Make room for the first piece of a passage: its header, or less to repeat."""
        while self._pieces and self._used + piece.tokens > self._room:
            self._used -= self._pieces.pop(0).tokens
        if not self._pieces:
            self._used = self._packer.header_tokens(piece.block, self._room)
        # Aim at a length that leaves no short last passage.
        parts = math.ceil(self._remaining / max(self._room - self._used, 1)) or 1
        self._goal = self._used + self._remaining / parts

    def _take(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._fresh += 1
        self._used += piece.tokens
        self._remaining -= piece.tokens

    def _add_parts(self, piece: Piece) -> None:
        """A heading is not left alone: as much of the piece as fits stays with it."""
        left = self._room - self._used
        parts = self._packer.refine(piece, left) if left >= self._room // 4 else [piece]
        if len(parts) == 1:
            self.close()
            self._pieces, self._used = [], 0
            self.add(piece)
            return
        self._take(parts[0])
        for part in parts[1:]:
            self.add(part)

    def _has_only_headings(self) -> bool:
        return all(piece.block.kind in _KEPT_WITH_NEXT for piece in self._pieces)

    def _is_full_before(self, piece: Piece) -> bool:
        if self._used + piece.tokens > self._room:
            return True
        if self._used >= self._goal:
            return not self._has_only_headings()
        return self._used >= _EARLY * self._goal and self._used + piece.block_tokens > self._room
