"""Names inside an OLE2 file (old Office formats, Outlook messages, encrypted Office files)."""

from __future__ import annotations

import struct
from typing import BinaryIO

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_BYTES = 512
_ENTRY_BYTES = 128
_MOST_SECTORS = 20_000
_LAST_SECTOR = 0xFFFFFFFA  # numbers from here on are marks, not places


def stream_names(stream: BinaryIO) -> set[str]:
    """The names of all streams and storages; what can be read of a broken directory.

    Layout: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb/
    """
    stream.seek(0)
    header = stream.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(MAGIC):
        return set()
    (shift,) = struct.unpack_from("<H", header, 30)
    if shift not in {9, 12}:
        return set()
    size = 1 << shift
    tables = struct.unpack_from("<109I", header, 76)
    (sector,) = struct.unpack_from("<I", header, 48)
    names: set[str] = set()
    seen: set[int] = set()
    while sector < _LAST_SECTOR and sector not in seen and len(seen) < _MOST_SECTORS:
        seen.add(sector)
        names |= _entry_names(_sector(stream, sector, size))
        sector = _next_sector(stream, sector, size, tables)
    return names


def _sector(stream: BinaryIO, number: int, size: int) -> bytes:
    stream.seek((number + 1) * size)
    return stream.read(size)


def _entry_names(block: bytes) -> set[str]:
    names = set()
    for start in range(0, len(block) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        (length,) = struct.unpack_from("<H", block, start + 64)
        if 2 < length <= 64:
            raw = block[start : start + length - 2]
            names.add(raw.decode("utf-16-le", "replace"))
    return names


def _next_sector(stream: BinaryIO, sector: int, size: int, tables: tuple[int, ...]) -> int:
    """The follower of a sector in its chain, from the allocation table."""
    per_table = size // 4
    table = sector // per_table
    if table >= len(tables) or tables[table] >= _LAST_SECTOR:
        return _LAST_SECTOR
    block = _sector(stream, tables[table], size)
    offset = sector % per_table * 4
    if offset + 4 > len(block):
        return _LAST_SECTOR
    (follower,) = struct.unpack_from("<I", block, offset)
    return int(follower)
