"""Cuts blocks into pieces that fit: sentences, then lines, clauses, words, and characters at last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from knowledge.extraction.base import Block, BlockKind
from providers.base import Tokenizer

_BATCH_TEXTS = 1_024
_BATCH_CHARS = 1_000_000
_CHARS_PER_TOKEN = 20  # a text with more than this for each allowed token is too long, uncounted
_TOKENS_PER_CHAR = 4  # the most a byte-level tokenizer makes of one character

# What ends a piece; the white space after it belongs to the piece. A full stop before a small letter
# or after an initial ends no sentence.
_SENTENCES = regex.compile(
    r"(?:(?<!\b(?:\p{Lu}|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|Art|Fig|Abs|vs|ca|bzw))\.|[!?…؟۔।])['\"”’»)\]]*\s+(?!\p{Ll})"
    r"|[。！？；｡]+[”’」』）】》]*\s*"
    r"|\n\s*\n"
)
_LINES = regex.compile(r"\n")
_CLAUSES = regex.compile(r"[,;:|–—،؛]\s+|[，、：；]\s*")
_WORDS = regex.compile(r"\s+")
_FINER = (_SENTENCES, _LINES, _CLAUSES, _WORDS)


@dataclass(slots=True)
class Piece:
    """What is never cut: `text[start:end]`, white space up to the next piece included.

    `block_tokens` is set on the first piece of a block and counts the whole block.
    """

    start: int
    end: int
    block: Block
    tokens: int = 0
    block_tokens: int = 0


class Splitter:
    """Makes measured pieces of the blocks of one text. Each text is counted once per level."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._text = text
        self._tokenizer = tokenizer

    def count(self, texts: Iterable[str]) -> list[int]:
        """The tokens of each text, asked for in large batches."""
        counts: list[int] = []
        batch: list[str] = []
        chars = 0
        for text in texts:
            batch.append(text)
            chars += len(text)
            if len(batch) >= _BATCH_TEXTS or chars >= _BATCH_CHARS:
                counts += self._tokenizer.count_tokens(batch)
                batch, chars = [], 0
        return counts + self._tokenizer.count_tokens(batch) if batch else counts

    def pieces(self, blocks: Sequence[Block], end: int, room: int) -> list[Piece]:
        """The sentences, code lines, rows and headings of blocks that follow each other up to `end`."""
        stops = [block.start for block in blocks[1:]] + [end]
        pieces: list[Piece] = []
        for block, stop in zip(blocks, stops, strict=True):
            pieces += self._cut(Piece(block.start, stop, block), _first_pattern(block.kind))
        self._measure(pieces, room)
        opening = None
        for piece in pieces:
            if opening is None or piece.block is not opening.block:
                opening = piece
            opening.block_tokens += piece.tokens
        return pieces

    def refine(self, piece: Piece, room: int) -> list[Piece]:
        """The piece cut at ever finer places until every part has at most `room` tokens."""
        pieces = [piece]
        for pattern in (*_FINER, None):
            if all(part.tokens <= room for part in pieces):
                break
            finer: list[Piece] = []
            for part in pieces:
                finer += [part] if part.tokens <= room else self._measured(part, pattern, room)
            pieces = finer
        return pieces

    def _measured(self, piece: Piece, pattern: regex.Pattern[str] | None, room: int) -> list[Piece]:
        parts = list(self._cut(piece, pattern) if pattern else _slices(piece, room))
        self._measure(parts, room)
        return parts

    def _cut(self, piece: Piece, pattern: regex.Pattern[str] | None) -> Iterator[Piece]:
        if pattern is None:
            yield piece
            return
        found = pattern.finditer(self._text, piece.start, piece.end)
        ends = [match.end() for match in found if match.end() < piece.end]
        for start, end in pairwise([piece.start, *ends, piece.end]):
            yield Piece(start, end, piece.block)

    def _measure(self, pieces: Sequence[Piece], room: int) -> None:
        longest = room * _CHARS_PER_TOKEN
        short = [piece for piece in pieces if piece.end - piece.start <= longest]
        counts = self.count(self._text[piece.start : piece.end] for piece in short)
        for piece in pieces:
            piece.tokens = piece.end - piece.start
        for piece, tokens in zip(short, counts, strict=True):
            piece.tokens = tokens


def _first_pattern(kind: BlockKind) -> regex.Pattern[str] | None:
    if kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
        return _SENTENCES
    return _LINES if kind is BlockKind.CODE else None


def _slices(piece: Piece, room: int) -> Iterator[Piece]:
    step = max(1, room // (_TOKENS_PER_CHAR + 1))
    for start in range(piece.start, piece.end, step):
        yield Piece(start, min(start + step, piece.end), piece.block)


def word_start(text: str, start: int, end: int) -> int:
    """The first place from `start` on where a word begins; `start` itself where there are no blanks."""
    if start <= 0 or text[start - 1].isspace():
        return start
    blank = _WORDS.search(text, start, min(end, start + 60))
    return blank.end() if blank else start
