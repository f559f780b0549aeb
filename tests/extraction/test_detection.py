"""Which format is a file: its content first, its name second, and a clear word for the rest."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from knowledge.extraction.base import ExtractionError, Fault
from knowledge.extraction.detection import FORMAT_BY_SUFFIX, HEAD_BYTES, detect_format
from knowledge.extraction.registry import EXTRACTORS, load_extractor
from tests.extraction.reading import read_detected

_TEXT_FORMATS = [
    "text",
    "markdown",
    "html",
    "json",
    "jsonl",
    "csv",
    "yaml",
    "xml",
    "code",
    "eml",
]


def _detect(data: bytes | str, filename: str) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return detect_format(raw[:HEAD_BYTES], filename, stream=io.BytesIO(raw))


def _refusal(data: bytes | str, filename: str) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        _detect(data, filename)
    assert filename in caught.value.message
    return caught.value


def _zip(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _ole(*names: str) -> bytes:
    """An OLE2 file of a header, one allocation table and one directory sector for four names."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<I", header, 48, 1)
    struct.pack_into("<109I", header, 76, 0, *[0xFFFFFFFF] * 108)
    table = struct.pack("<128I", 0xFFFFFFFD, 0xFFFFFFFE, *[0xFFFFFFFF] * 126)
    directory = bytearray(512)
    for index, name in enumerate(names):
        raw = name.encode("utf-16-le")
        directory[index * 128 : index * 128 + len(raw)] = raw
        struct.pack_into("<H", directory, index * 128 + 64, len(raw) + 2)
    return bytes(header) + table + bytes(directory)


@pytest.mark.parametrize("name", _TEXT_FORMATS)
def test_suffixes_agree_with_the_extractors(name: str) -> None:
    suffixes = {suffix for suffix, found in FORMAT_BY_SUFFIX.items() if found == name}
    assert suffixes == load_extractor(name).suffixes


def test_every_format_found_has_an_extractor() -> None:
    assert set(FORMAT_BY_SUFFIX.values()) <= set(EXTRACTORS)


@pytest.mark.parametrize(
    ("data", "filename", "name"),
    [
        ("plain words", "README", "text"),
        ("plain words", "notes.unknown", "text"),
        ("* Heading", "notes.org", "text"),
        ("1\n00:00:01 --> 00:00:02\nHi", "film.SRT", "text"),
        ("# Heading", "notes.md", "markdown"),
        ("<p>Hi</p>", "page.htm", "html"),
        ("<!-- saved -->\n<!DOCTYPE html><p>Hi", "page", "html"),
        ("<html><body>Not found</body></html>", "export.csv", "html"),
        ("<html><table><tr><td>1</table></html>", "report.xls", "html"),
        ("<html>", "example.md", "markdown"),
        ("<?xml version='1.0'?><html xmlns='x'><p>a</p></html>", "page.xml", "html"),
        ("<?xml version='1.0'?><a>b</a>", "data", "xml"),
        ('{"a": 1}', "data", "json"),
        ('{"a": 1}\n{"a": 2}\n', "data", "jsonl"),
        ('{"a": 1', "broken.txt", "text"),
        ("[note] remember", "memo", "text"),
        ("a\tb\n1\t2\n", "table.xls", "csv"),
        ("From: a@b.c\nTo: d@e.f\nSubject: Hi\n\nText", "message", "eml"),
        ("From: a@b.c\nTo: d@e.f\nSubject: Hi\n\nText", "message.txt", "text"),
        ("Subject: of this memo\n\nText", "memo", "text"),
        ("#!/bin/sh\necho", "run", "code"),
        ("FROM alpine", "Dockerfile", "code"),
        (b"%PDF-1.7\n", "paper.pdf", "pdf"),
        (b"\n%PDF-1.4\n", "paper.txt", "pdf"),
        (b"HTTP/1.1 200\n\n%PDF-1.4\n", "paper.pdf", "pdf"),
        (b"\xff\xfeH\x00i\x00", "wide.txt", "text"),
        ("ID3 tags explained", "id3", "text"),
    ],
)  # fmt: skip
def test_format_is_found(data: bytes | str, filename: str, name: str) -> None:
    assert _detect(data, filename) == name


@pytest.mark.parametrize(
    ("member", "name"),
    [("word/document.xml", "docx"), ("xl/workbook.xml", "xlsx"), ("ppt/presentation.xml", "pptx")],
)
def test_office_packages_by_their_parts_whatever_the_name(member: str, name: str) -> None:
    assert _detect(_zip(**{"[Content_Types].xml": "", member: ""}), "letter.doc") == name


@pytest.mark.parametrize(
    ("data", "filename", "words"),
    [
        (b"\x89PNG\r\n\x1a\n", "a.png", "an image (PNG)"),
        (b"\xff\xd8\xff\xe0", "a.jpg", "an image (JPEG)"),
        (b"II*\x00", "a.tif", "an image (TIFF)"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a.webp", "an image (WebP)"),
        (b"\x00\x00\x00\x18ftypheic", "a.heic", "an image (HEIF)"),
        (b"\x00\x00\x00\x18ftypmp42", "a.mp4", "an audio or video file"),
        (b"ID3\x04\x00\x00", "a.mp3", "an audio or video file"),
        (b"\x1f\x8b\x08\x00", "a.gz", "an archive (gzip)"),
        (b"7z\xbc\xaf\x27\x1c", "a.7z", "an archive (7z)"),
        (b"Rar!\x1a\x07\x00", "a.rar", "an archive (RAR)"),
        (b"SQLite format 3\x00", "a.db", "a database (SQLite)"),
        (b"\x7fELF\x02", "a.out", "a program (ELF)"),
        (b"MZ" + b"\x00" * 100 + b"PE\x00\x00", "a.exe", "a program (Windows)"),
        (b"{\\rtf1 hello}", "a.rtf", "a Rich Text document"),
        (b'{"cells": [], "nbformat": 4}', "a.ipynb", "a Jupyter notebook"),
        (b"From a@b.c Mon Jun 01 04:28:28 2009\nTo: x\n\nHi", "mails", "a mailbox of many messages"),
        (_zip(**{"docs/a.html": "x"}), "a.zip", "a zip archive"),
        (_zip(**{"xl/workbook.bin": ""}), "a.xlsb", "a binary Excel workbook"),
        (_zip(mimetype="application/epub+zip"), "a.epub", "an e-book"),
        (_zip(mimetype="application/vnd.oasis.opendocument.text"), "a.odt", "an OpenDocument text"),
        (_zip(**{"Index/Document.iwa": ""}), "a.pages", "an Apple iWork document"),
        (_ole("Root Entry", "WordDocument"), "a.doc", "a legacy Word document"),
        (_ole("Root Entry", "Workbook"), "a.xls", "a legacy Excel workbook"),
        (_ole("Root Entry", "PowerPoint Document"), "a.ppt", "a legacy PowerPoint presentation"),
        (_ole("Root Entry", "__properties_version1.0"), "a.msg", "an Outlook message"),
        (_ole("Root Entry", "WordDocument", "Workbook"), "b.xls", "a legacy Excel workbook"),
        (_ole("Root Entry"), "a.bin", "a file of an old, unknown Office format"),
        (b"x", "~$report.docx", "a lock or system file"),
        (b"x", "folder/.DS_Store", "a lock or system file"),
        (b"x", "C:\\docs\\Thumbs.db", "a lock or system file"),
        (bytes(range(256)), "blob", "binary data"),
    ],
)  # fmt: skip
def test_unsupported_file_is_named_for_what_it_is(data: bytes, filename: str, words: str) -> None:
    refusal = _refusal(data, filename)
    assert refusal.fault is Fault.UNSUPPORTED
    assert words in refusal.message


@pytest.mark.parametrize(
    "data",
    [
        _ole("Root Entry", "EncryptionInfo", "EncryptedPackage"),
        _zip(
            mimetype="application/vnd.oasis.opendocument.text",
            **{"META-INF/manifest.xml": "<manifest:encryption-data/>"},
        ),
    ],
    ids=["office", "opendocument"],
)
def test_password_is_asked_away(data: bytes) -> None:
    refusal = _refusal(data, "plan.docx")
    assert refusal.fault is Fault.ENCRYPTED
    assert "Save a copy without the password" in refusal.message


@pytest.mark.parametrize("filename", ["a.pdf", "a.docx", "a.xlsx", "a.pptx"])
@pytest.mark.parametrize("data", [b"just text", bytes(range(256))])
def test_document_that_is_none_is_corrupt(data: bytes, filename: str) -> None:
    assert _refusal(data, filename).fault is Fault.CORRUPT


def test_cut_package_is_corrupt() -> None:
    assert _refusal(_zip(**{"word/document.xml": "x"})[:40], "a.docx").fault is Fault.CORRUPT


def test_empty_file() -> None:
    assert _refusal(b"", "a.pdf").fault is Fault.EMPTY


@pytest.mark.parametrize(
    "filename", ["a.txt", "a.md", "a.html", "a.csv", "a.yaml", "a.py", "a.eml"]
)
def test_blank_file_has_no_text(filename: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        read_detected(" \n \n", filename)
    assert caught.value.fault is Fault.NO_TEXT
