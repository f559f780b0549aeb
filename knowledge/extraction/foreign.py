"""Formats that are known and not read: what they are and what to do instead."""

from __future__ import annotations

import re

_SYSTEM_NAMES = frozenset({".ds_store", "thumbs.db", "desktop.ini", ".localized", "ehthumbs.db"})
_APPLE_DOUBLE = b"\x00\x05\x16\x07"

_IMAGE = "an image ({}) with no text layer; reading text off pictures (OCR) is not available yet. Upload the text as a document."
_ARCHIVE = "an archive ({}). Unpack it and upload the files inside."
_MEDIA = "an audio or video file ({}). Upload a transcript instead."
_PROGRAM = "a program ({}), not a document. Upload its documentation instead."
_DATABASE = "a database ({}). Export the tables to CSV and upload those."
_RTF = "a Rich Text document (.rtf). Save it as .docx and upload that."
_NOTEBOOK = "a Jupyter notebook (.ipynb). Export it as Markdown or HTML and upload that."
_MAILBOX = "a mailbox of many messages (.mbox). Export the messages as .eml files and upload those."
_HELP = "a compiled help file (.chm). Unpack its pages as HTML and upload those."
_POSTSCRIPT = "a PostScript file. Convert it to PDF and upload that."
_FONT = "a font, not a document."

# First bytes → what the file is. https://en.wikipedia.org/wiki/List_of_file_signatures
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"{\\rtf", _RTF),
    (b"\x89PNG\r\n\x1a\n", _IMAGE.format("PNG")),
    (b"\xff\xd8\xff", _IMAGE.format("JPEG")),
    (b"GIF87a", _IMAGE.format("GIF")),
    (b"GIF89a", _IMAGE.format("GIF")),
    (b"II*\x00", _IMAGE.format("TIFF")),
    (b"MM\x00*", _IMAGE.format("TIFF")),
    (b"8BPS", _IMAGE.format("Photoshop")),
    (b"\x00\x00\x01\x00", _IMAGE.format("icon")),
    (b"AT&TFORM", _IMAGE.format("DjVu")),
    (b"\x1f\x8b", _ARCHIVE.format("gzip")),
    (b"BZh", _ARCHIVE.format("bzip2")),
    (b"\xfd7zXZ\x00", _ARCHIVE.format("xz")),
    (b"\x28\xb5\x2f\xfd", _ARCHIVE.format("zstd")),
    (b"7z\xbc\xaf\x27\x1c", _ARCHIVE.format("7z")),
    (b"Rar!\x1a\x07", _ARCHIVE.format("RAR")),
    (b"MSCF", _ARCHIVE.format("cabinet")),
    (b"SQLite format 3\x00", _DATABASE.format("SQLite")),
    (b"PAR1", _DATABASE.format("Parquet")),
    (b"\x00\x01\x00\x00Standard ", _DATABASE.format("Access")),
    (b"\x7fELF", _PROGRAM.format("ELF")),
    (b"\xca\xfe\xba\xbe", _PROGRAM.format("Java or macOS")),
    (b"\xcf\xfa\xed\xfe", _PROGRAM.format("macOS")),
    (b"\x00asm", _PROGRAM.format("WebAssembly")),
    (b"ID3", _MEDIA.format("MP3")),
    (b"OggS", _MEDIA.format("Ogg")),
    (b"fLaC", _MEDIA.format("FLAC")),
    (b"\x1aE\xdf\xa3", _MEDIA.format("Matroska")),
    (b"FLV\x01", _MEDIA.format("Flash")),
    (b"0&\xb2u\x8ef\xcf\x11", _MEDIA.format("Windows Media")),
    (b"ITSF", _HELP),
    (b"%!PS", _POSTSCRIPT),
    (b"wOFF", _FONT),
    (b"wOF2", _FONT),
    (b"OTTO", _FONT),
)
_RIFF = {
    b"WEBP": _IMAGE.format("WebP"),
    b"WAVE": _MEDIA.format("WAV"),
    b"AVI ": _MEDIA.format("AVI"),
}
_TEXTUAL = frozenset({b"{\\rtf", b"%!PS"})
_BRANDED_IMAGES = (b"heic", b"heix", b"mif1", b"avif")
_MBOX = re.compile(rb"From \S+ .*\d{4}\r?\n[A-Za-z-]+:")
_NBFORMAT = re.compile(rb'"nbformat"\s*:|"cell_type"\s*:')


def is_system_file(name: str, head: bytes) -> bool:
    """Whether a program left the file beside the documents of its user."""
    small = name.lower()
    if small in _SYSTEM_NAMES or small.startswith(("~$", ".~lock.")):
        return True
    return small.startswith("._") and head.startswith(_APPLE_DOUBLE)


def find_foreign(head: bytes, suffix: str) -> str:
    """What the file is and what to do, for formats that are not read; empty for all others."""
    binary = b"\x00" in head[:4096]
    for signature, text in _SIGNATURES:
        # A text may well begin with the letters `ID3`; the files meant here are binary.
        if head.startswith(signature) and (
            binary or signature in _TEXTUAL or not signature.isalnum()
        ):
            return text
    return _by_offset(head) or _by_weak_mark(head) or _by_name(head, suffix)


def _by_offset(head: bytes) -> str:
    """Formats whose mark is not at the very beginning."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        image = head[8:12] in _BRANDED_IMAGES
        return _IMAGE.format("HEIF") if image else _MEDIA.format("MP4")
    return _ARCHIVE.format("tar") if head[257:262] == b"ustar" else ""


def _by_weak_mark(head: bytes) -> str:
    """Formats whose mark is too short to stand alone."""
    if head.startswith(b"MZ") and b"PE\x00\x00" in head[:4096]:
        return _PROGRAM.format("Windows")
    if head.startswith(b"BM") and head[6:10] == b"\x00\x00\x00\x00":
        return _IMAGE.format("BMP")
    return _MEDIA.format("MP3") if head[:2] in {b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"} else ""


def _by_name(head: bytes, suffix: str) -> str:
    """Text formats that would be read as noise: the content has to agree with the name."""
    if suffix == ".mbox" or (_MBOX.match(head) and suffix not in {".eml", ".txt"}):
        return _MAILBOX
    if suffix == ".ipynb" and _NBFORMAT.search(head):
        return _NOTEBOOK
    return ""
