"""Zip containers are judged before anything is unpacked."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from knowledge.extraction import archives
from knowledge.extraction.archives import open_zip
from knowledge.extraction.base import ExtractionError, Fault, Limits, Source


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _open(data: bytes, limits: Limits | None = None) -> zipfile.ZipFile:
    return open_zip(Source(io.BytesIO(data), "a.docx", len(data)), limits or Limits())


def _fault(data: bytes, limits: Limits | None = None) -> Fault:
    with pytest.raises(ExtractionError) as caught:
        _open(data, limits)
    assert caught.value.message.startswith("a.docx ")
    return caught.value.fault


def test_honest_archive_opens() -> None:
    with _open(_zip({"word/document.xml": b"<a/>" * 100_000})) as archive:
        assert archive.read("word/document.xml").startswith(b"<a/>")


@pytest.mark.parametrize("cut", [10, 60, 100])
def test_cut_archive_is_corrupt(cut: int) -> None:
    assert _fault(_zip({"a.xml": bytes(range(200))})[:-cut]) is Fault.CORRUPT


def test_part_that_unpacks_out_of_proportion_is_a_bomb() -> None:
    assert _fault(_zip({"a.xml": b"\0" * (11 * 2**20)})) is Fault.TOO_LARGE


def test_total_size_is_bounded() -> None:
    parts = {f"{number}.bin": bytes(60) for number in range(10)}
    assert _fault(_zip(parts), Limits(max_expanded_bytes=500)) is Fault.TOO_LARGE


def test_number_of_parts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    assert _fault(_zip(dict.fromkeys("abcd", b""))) is Fault.TOO_LARGE


def test_encrypted_part_is_named_so() -> None:
    data = bytearray(_zip({"a.xml": b"hello"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", data, data.index(mark) + offset, 1)
    assert _fault(bytes(data)) is Fault.ENCRYPTED
