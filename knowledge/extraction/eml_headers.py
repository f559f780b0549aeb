"""Mail headers as people read them: encoded words decoded, raw bytes guessed."""

from __future__ import annotations

import re
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from knowledge.extraction.base import ExtractionError
from knowledge.extraction.builder import one_line
from knowledge.extraction.dates import iso_date
from knowledge.extraction.decoding import decode

_SHOWN = ("From", "To", "Cc", "Date")
_ADDRESS = re.compile(r"\s*<[^<>]*>\s*$")


def header_text(message: Message, name: str) -> str:
    """The first header of that name, decoded; empty when there is none."""
    wanted = name.lower()
    for key, value in message.raw_items():
        if key.lower() == wanted:
            return decode_words(str(value))
    return ""


def decode_words(raw: str) -> str:
    """A header value with its encoded words (RFC 2047) and raw bytes as text."""
    # The words of one sentence may be cut over lines; white space between them is not text.
    try:
        parts = decode_header(re.sub(r"\r?\n(?=[ \t])", "", raw))
    except (HeaderParseError, ValueError):
        return one_line(_raw_text(raw))
    return one_line("".join(_part_text(part, charset) for part, charset in parts))


def header_lines(message: Message) -> str:
    """The lines `From: …`, `To: …`, `Cc: …`, `Date: …` that the message has."""
    shown = ((name, header_text(message, name)) for name in _SHOWN)
    return "\n".join(f"{name}: {text}" for name, text in shown if text)


def message_facts(message: Message) -> dict[str, str]:
    """What ingestion understands: author and date, and the addresses as plain facts."""
    sender = header_text(message, "From")
    name = _ADDRESS.sub("", sender).strip('" ')
    return {
        "author": name or sender.strip("<> "),
        "created_at": iso_date(header_text(message, "Date")),
        "from": sender,
        "to": header_text(message, "To"),
        "cc": header_text(message, "Cc"),
        "message_id": header_text(message, "Message-ID"),
    }


def file_name(part: Message) -> str:
    """The name of an attachment, in whichever of the usual ways it is written."""
    try:
        name = part.get_filename() or ""
    except (ValueError, TypeError, LookupError, IndexError):
        name = ""
    return decode_words(name)


def _part_text(part: bytes | str, charset: str | None) -> str:
    if isinstance(part, str):
        return _raw_text(part)
    try:
        return decode(part, "header", declared=charset).text
    except ExtractionError:
        return part.decode("ascii", "replace")


def _raw_text(raw: str) -> str:
    """The parser hands bytes beyond ASCII through as surrogates."""
    data = raw.encode("utf-8", "surrogateescape")
    try:
        return decode(data, "header").text
    except ExtractionError:
        return data.decode("utf-8", "replace")
