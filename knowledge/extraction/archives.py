"""Opening zip-based files (Office documents) without being drowned by them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence

from knowledge.extraction.base import ExtractionError, Fault, Limits, Source

MAX_MEMBERS = 50_000
# Small parts of plain XML shrink a thousandfold in honest files; only large parts are judged.
_SMALL_PART_BYTES = 10 * 1024 * 1024
_FLAG_ENCRYPTED = 0x1


def open_zip(source: Source, limits: Limits) -> zipfile.ZipFile:
    """The zip container of `source`, checked before anything is unpacked.

    `zipfile` never yields more bytes of a member than its directory entry declares, so the declared
    sizes are a true bound. Archives inside the archive stay packed: nobody here opens them.
    """
    source.stream.seek(0)
    try:
        archive = zipfile.ZipFile(source.stream)
        members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        raise ExtractionError(
            Fault.CORRUPT,
            f"{source.filename} is damaged or was cut off: its zip container cannot be read. "
            "Open it in the program it comes from, save it again, and upload the new copy.",
        ) from error
    _check_members(members, source.filename, limits)
    return archive


def _check_members(members: Sequence[zipfile.ZipInfo], filename: str, limits: Limits) -> None:
    if len(members) > MAX_MEMBERS:
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"{filename} holds {len(members):,} packed parts; at most {MAX_MEMBERS:,} are read. "
            "Split it into smaller files.",
        )
    if any(member.flag_bits & _FLAG_ENCRYPTED for member in members):
        raise ExtractionError(
            Fault.ENCRYPTED,
            f"{filename} is protected by a password. Save a copy without the password and upload that.",
        )
    expanded = sum(member.file_size for member in members)
    if expanded > limits.max_expanded_bytes:
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"{filename} would unpack to {expanded // 2**20:,} MB; at most "
            f"{limits.max_expanded_bytes // 2**20:,} MB are read. Split it into smaller files.",
        )
    if any(_is_bomb(member, limits) for member in members):
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"{filename} unpacks to more than {limits.max_expansion} times its size, as a zip bomb "
            "does. If it is honest, save it again in the program it comes from.",
        )


def _is_bomb(member: zipfile.ZipInfo, limits: Limits) -> bool:
    if member.file_size <= _SMALL_PART_BYTES:
        return False
    return member.file_size > limits.max_expansion * max(member.compress_size, 1)
