"""Tells the format of a file by its content first and its name second."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import BinaryIO

from knowledge.extraction import ole
from knowledge.extraction.base import ExtractionError, Fault
from knowledge.extraction.decoding import decode
from knowledge.extraction.foreign import find_foreign, is_system_file
from knowledge.extraction.jsonl import looks_like_lines
from knowledge.extraction.packages import detect_ole, detect_zip

HEAD_BYTES = 65_536  # what callers give as `head`

_SUFFIXES: dict[str, str] = {
    "text": ".txt .text .log .org .rst .srt .vtt .adoc .asciidoc .tex .bib .nfo .ics .vcf .diff .patch",
    "markdown": ".md .markdown .mdown .mkd .mdx .rmd .qmd",
    "html": ".html .htm .xhtml .shtml",
    "json": ".json .geojson .jsonld .webmanifest",
    "jsonl": ".jsonl .ndjson .jsonlines",
    "csv": ".csv .tsv .tab .psv",
    "yaml": ".yaml .yml",
    "xml": ".xml .rss .atom .rdf .xsd .xsl .xslt .svg .kml .gpx .dita .docbook .xliff .opml .wsdl",
    "eml": ".eml .mht .mhtml",
    "code": (
        ".py .pyi .js .mjs .cjs .jsx .ts .tsx .vue .svelte .java .kt .kts .scala .groovy .c .h .cc "
        ".cpp .cxx .hh .hpp .cs .go .rs .swift .m .mm .r .jl .rb .php .pl .pm .lua .sh .bash .zsh "
        ".fish .ps1 .bat .cmd .sql .css .scss .less .dart .ex .exs .erl .hs .ml .fs .clj .lisp .el "
        ".vb .pas .f90 .asm .proto .graphql .tf .hcl .toml .ini .cfg .conf .properties .env "
        ".gradle .cmake .dockerfile .makefile .mk .sol .zig .nim .v .sv .vhd .tcl .awk"
    ),
}
FORMAT_BY_SUFFIX = {
    suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
_CODE_NAMES = frozenset({"dockerfile", "makefile", "jenkinsfile", "vagrantfile", "gemfile"})
_BINARY_SUFFIXES = frozenset({".pdf", ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm"})
# Formats whose own text may begin like HTML or XML.
_KEEP_NAME = frozenset({"html", "markdown", "code", "yaml", "eml"})
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html\b|<html\b|<head\b|<body\b)",
    re.IGNORECASE | re.DOTALL,
)
_MAIL_HEADER = re.compile(
    r"^(from|to|subject|date|received|message-id|return-path|mime-version|delivered-to|sender):",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER_LINE = re.compile(r"[A-Za-z][A-Za-z0-9-]*:")


def detect_format(head: bytes, filename: str, *, stream: BinaryIO) -> str:
    """The key of `registry.EXTRACTORS` that reads the file; `head` is its first 64 KB.

    Raises `ExtractionError` for what cannot be read; the message says what the file is.
    """
    name = PurePosixPath(filename.replace("\\", "/")).name
    suffix = PurePosixPath(name).suffix.lower()
    if is_system_file(name, head):
        raise ExtractionError(
            Fault.UNSUPPORTED,
            f"{filename} is a lock or system file that a program leaves beside documents. "
            "Upload the document itself.",
        )
    if not head:
        raise ExtractionError(
            Fault.EMPTY, f"{filename} is empty: it has no bytes. Upload it again."
        )
    if _is_pdf(head, suffix):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return detect_zip(stream, filename)
    if head.startswith(ole.MAGIC):
        return detect_ole(stream, filename)
    foreign = find_foreign(head, suffix)
    if foreign:
        raise ExtractionError(Fault.UNSUPPORTED, f"{filename} is {foreign}")
    return _text_format(head, filename, name.lower(), suffix)


def _is_pdf(head: bytes, suffix: str) -> bool:
    if head.lstrip()[:5] == b"%PDF-":
        return True
    # Printers and web servers put lines of their own before the document.
    return suffix == ".pdf" and (b"%PDF-" in head[:1024] or b" obj" in head)


def _text_format(head: bytes, filename: str, name: str, suffix: str) -> str:
    named = FORMAT_BY_SUFFIX.get(suffix)
    try:
        text = decode(head, filename).text.lstrip("\ufeff\n\t ")
    except ExtractionError:
        if suffix in _BINARY_SUFFIXES:
            raise _damaged(filename, suffix) from None
        raise
    by_content = _markup_format(text, named)
    if by_content:
        return by_content
    if suffix in _BINARY_SUFFIXES:
        raise _damaged(filename, suffix)
    return named or _unnamed_format(text, name, suffix)


def _markup_format(text: str, named: str | None) -> str | None:
    if named in _KEEP_NAME:
        return named
    if _HTML.match(text):
        return "html"
    return "xml" if text.startswith("<?xml") and named in {None, "text", "csv", "json"} else None


def _unnamed_format(text: str, name: str, suffix: str) -> str:
    """The format of text whose name says nothing."""
    if name in _CODE_NAMES or text.startswith("#!"):
        return "code"
    if suffix in {".xls", ".dat"} and "\t" in text:
        return "csv"  # programs write tabbed text and call it a workbook
    if _is_mail(text):
        return "eml"
    if text[:1] in {"{", "["} and re.match(r'[{\[]\s*["\[{\]}\d]', text):
        return "jsonl" if looks_like_lines(text[: text.rfind("\n") + 1]) else "json"
    return "text"


def _is_mail(text: str) -> bool:
    """Whether the text begins with the headers of a message."""
    first, _, _rest = text.partition("\n\n")
    if not _HEADER_LINE.match(first):
        return False
    return len({match[1].lower() for match in _MAIL_HEADER.finditer(first)}) >= 2


def _damaged(filename: str, suffix: str) -> ExtractionError:
    return ExtractionError(
        Fault.CORRUPT,
        f"{filename} is not a {suffix[1:].upper()} file although it is named so: it is damaged, "
        "incomplete or of another format. Open it in its own program and save it again.",
    )
