"""Looks into zip and OLE2 containers: which document is it, or why can it not be read."""

from __future__ import annotations

import zipfile
from collections.abc import Set as AbstractSet
from typing import BinaryIO

from knowledge.extraction import ole
from knowledge.extraction.archives import open_zip
from knowledge.extraction.base import ExtractionError, Fault, Limits, Source

_PROTECTED = "{} is protected by a password. Save a copy without the password and upload that."
_OPEN_DOCUMENTS = {
    "application/vnd.oasis.opendocument.text": "an OpenDocument text (.odt). Save it as .docx",
    "application/vnd.oasis.opendocument.spreadsheet": (
        "an OpenDocument spreadsheet (.ods). Save it as .xlsx"
    ),
    "application/vnd.oasis.opendocument.presentation": (
        "an OpenDocument presentation (.odp). Save it as .pptx"
    ),
    "application/epub+zip": "an e-book (.epub). Convert it to PDF or HTML",
}
# A member that gives the format away → what the file is and what to do.
_PACKAGES = (
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb). Save it as .xlsx"),
    ("visio/document.xml", "a Visio drawing (.vsdx). Export it as PDF"),
    ("index/document.iwa", "an Apple iWork document. Export it as PDF or in an Office format"),
    ("index.apxl", "an Apple Keynote presentation. Export it as PDF or .pptx"),
    ("index.zip", "an Apple iWork document. Export it as PDF or in an Office format"),
    (
        "buildversionhistory.plist",
        "an Apple iWork document. Export it as PDF or in an Office format",
    ),
    ("fixeddocseq.fdseq", "an XPS document. Export it as PDF"),
    ("androidmanifest.xml", "an Android program. Choose its documentation"),
    ("meta-inf/manifest.mf", "a Java program (.jar). Choose its documentation"),
    ("doc.kml", "a packed map (.kmz). Unpack the .kml file inside"),
)
_OFFICE = (("word/", "docx"), ("xl/", "xlsx"), ("ppt/", "pptx"))
_OLE_KINDS = (
    ("WordDocument", ".doc", "a legacy Word document (.doc). Save it as .docx"),
    ("PowerPoint Document", ".ppt", "a legacy PowerPoint presentation (.ppt). Save it as .pptx"),
    ("Workbook", ".xls", "a legacy Excel workbook (.xls). Save it as .xlsx"),
    ("Book", ".xls", "a legacy Excel workbook (.xls). Save it as .xlsx"),
    ("__properties_version1.0", ".msg", "an Outlook message (.msg). Save it as .eml"),
    ("VisioDocument", ".vsd", "a legacy Visio drawing (.vsd). Export it as PDF"),
    ("HwpSummaryInformation", ".hwp", "a Hangul document (.hwp). Save it as .docx"),
    ("Quill", ".pub", "a Publisher document (.pub). Export it as PDF"),
)
_SEALED_MARKS = tuple(
    mark.encode("utf-16-le") for mark in ("IPM.Note.SMIME", "multipart/encrypted", "pkcs7-mime")
)
_SEARCHED_BYTES = 4 * 1024 * 1024


def detect_zip(stream: BinaryIO, filename: str) -> str:
    """The Office format of a zip container; raises for every other container."""
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = {name.replace("\\", "/").lower(): name for name in archive.namelist()}
            kind = _open_document(archive, members, filename)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError):
        # Opening it again gives the full report on what is wrong.
        kind = ""
        open_zip(Source(stream, filename, 0), Limits()).close()
        members = {}
    for member, text in _PACKAGES:
        kind = kind or (text if member in members else "")
    if kind:
        raise _unsupported(filename, kind)
    for prefix, name in _OFFICE:
        if any(member.startswith(prefix) and member.endswith(".xml") for member in members):
            return name
    open_zip(Source(stream, filename, 0), Limits()).close()
    raise ExtractionError(
        Fault.UNSUPPORTED,
        f"{filename} is a zip archive. Unpack it and upload the files inside.",
    )


def detect_ole(stream: BinaryIO, filename: str) -> str:
    """Never returns: what is inside OLE2 is either encrypted or of an old format."""
    names = ole.stream_names(stream)
    if names & {"EncryptedPackage", "EncryptionInfo"}:
        raise ExtractionError(Fault.ENCRYPTED, _PROTECTED.format(filename))
    found = [(suffix, text) for name, suffix, text in _OLE_KINDS if name in names]
    # A document that embeds another has the streams of both; then the name decides.
    named = [text for suffix, text in found if filename.lower().endswith(suffix)]
    if any(suffix == ".msg" for suffix, _ in found) and _is_sealed(stream):
        raise ExtractionError(
            Fault.ENCRYPTED,
            f"{filename} is an encrypted or sealed Outlook message. Open it in Outlook, save it "
            "without encryption as .eml, and upload that.",
        )
    if named or found:
        raise _unsupported(filename, (named or [found[0][1]])[0])
    raise _unsupported(filename, _unknown_ole(names))


def _open_document(archive: zipfile.ZipFile, members: dict[str, str], filename: str) -> str:
    """What an OpenDocument or EPUB package is; empty for other containers."""
    if "mimetype" not in members:
        return ""
    with archive.open(members["mimetype"]) as member:
        mime = member.read(200).decode("ascii", "replace").strip()
    if "meta-inf/manifest.xml" in members:
        with archive.open(members["meta-inf/manifest.xml"]) as member:
            if b"encryption-data" in member.read(_SEARCHED_BYTES):
                raise ExtractionError(Fault.ENCRYPTED, _PROTECTED.format(filename))
    base = mime.removesuffix("-template")
    return _OPEN_DOCUMENTS.get(base, "an OpenDocument file. Save it in an Office format")


def _is_sealed(stream: BinaryIO) -> bool:
    stream.seek(0)
    data = stream.read(_SEARCHED_BYTES)
    return any(mark in data for mark in _SEALED_MARKS)


def _unknown_ole(names: AbstractSet[str]) -> str:
    if not names:
        return "a damaged file of an old Office format. Open it in its program and save it anew"
    return "a file of an old, unknown Office format. Open it in its program, save it as PDF"


def _unsupported(filename: str, text: str) -> ExtractionError:
    return ExtractionError(Fault.UNSUPPORTED, f"{filename} is {text} and upload that.")
