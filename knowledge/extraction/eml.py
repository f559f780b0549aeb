"""E-mail messages (RFC 5322, MIME): headers, the best body, attached text and attached messages."""

from __future__ import annotations

import email
import email.policy
from email.message import Message
from typing import ClassVar

from knowledge.extraction.base import (
    Coverage,
    Extracted,
    ExtractionError,
    Extractor,
    Fault,
    Limits,
    Source,
)
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.decoding import decode
from knowledge.extraction.eml_headers import (
    decode_words,
    file_name,
    header_lines,
    header_text,
    message_facts,
)
from knowledge.extraction.html import add_html, declared_charset, html_to_text
from knowledge.extraction.text import add_paragraphs

_ENCRYPTED = frozenset(
    {"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
)
# Signatures and keys: nothing to read, and nothing anyone misses.
_SILENT = frozenset(
    {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
)
_READABLE = frozenset({"message/delivery-status", "message/disposition-notification"})
_POOR_PLAIN = 0.3  # a plain body this much shorter than the HTML one is a stub


class EmlExtractor(Extractor):
    """One message and all messages in it. Other attachments are named, not opened."""

    mime_types: ClassVar[frozenset[str]] = frozenset({"message/rfc822"})
    suffixes: ClassVar[frozenset[str]] = frozenset({".eml", ".mht", ".mhtml"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        try:
            # The older policy keeps broken headers as they are where the newer one raises.
            message = email.message_from_bytes(source.stream.read(), policy=email.policy.compat32)
        except RecursionError as error:
            raise _too_deep(source.filename, limits) from error
        builder = TextBuilder(limits)
        reader = _Reader(builder, source.filename, limits)
        reader.message(message, 1)
        return builder.finish(
            Coverage("parts", reader.found, reader.indexed),
            title=header_text(message, "Subject"),
            metadata=message_facts(message),
        )


class _Reader:
    """Adds messages and their parts in order, and counts the parts that gave text."""

    def __init__(self, builder: TextBuilder, filename: str, limits: Limits) -> None:
        self.found = 0
        self.indexed = 0
        self._builder = builder
        self._filename = filename
        self._limits = limits

    def message(self, message: Message, depth: int) -> None:
        if depth > self._limits.max_depth:
            raise _too_deep(self._filename, self._limits)
        self._builder.heading(header_text(message, "Subject"), depth)
        self._builder.paragraph(header_lines(message))
        self._part(message, depth)

    def _part(self, part: Message, depth: int) -> None:
        kind = part.get_content_type()
        if depth > self._limits.max_depth:
            raise _too_deep(self._filename, self._limits)
        if kind in _ENCRYPTED:
            self._encrypted(part)
        elif kind == "message/rfc822":
            for inner in _children(part):
                self.message(inner, depth + 1)
        elif kind == "multipart/alternative":
            self._alternatives(_children(part), depth)
        elif kind in _READABLE:
            self._fields(part)
        elif part.is_multipart():
            for child in _children(part):
                self._part(child, depth + 1)
        elif kind not in _SILENT:
            self._leaf(part, kind)

    def _alternatives(self, parts: list[Message], depth: int) -> None:
        """The plain body, unless it is a stub beside the HTML one."""
        plain = next((part for part in parts if part.get_content_type() == "text/plain"), None)
        others = [part for part in parts if part.get_content_type() != "text/plain"]
        if plain is None or not others:
            chosen = others[-1] if others else plain
        else:
            html = next((part for part in others if part.get_content_type() == "text/html"), None)
            chosen = html if html is not None and self._is_stub(plain, html) else plain
        if chosen is not None:
            self._part(chosen, depth + 1)
        for part in others:
            # Related pictures aside, what else comes along (an invitation, a file) is not a copy.
            if part is not chosen and part.get_content_type() != "text/html":
                self._companions(part, depth)

    def _companions(self, part: Message, depth: int) -> None:
        if not part.is_multipart():
            self._part(part, depth + 1)
            return
        for child in _children(part):
            if child.get_content_type() != "text/html":
                self._part(child, depth + 1)

    def _is_stub(self, plain: Message, html: Message) -> bool:
        text = html_to_text(self._text(html), self._limits)
        return len("".join(self._text(plain).split())) < _POOR_PLAIN * len("".join(text.split()))

    def _leaf(self, part: Message, kind: str) -> None:
        name = file_name(part)
        if kind.startswith("image/") and part["Content-ID"]:
            return  # a picture within the body
        self.found += 1
        if not kind.startswith("text/"):
            if name or part.get_content_disposition() == "attachment":
                self._builder.paragraph(f"Attachment: {name or kind}")
                self._builder.warn(f"The attachment {name or kind} is not read.")
            return
        before = self._builder.block_count
        if name:
            self._builder.paragraph(f"Attachment: {name}")
        text = self._text(part)
        if kind == "text/html":
            add_html(self._builder, text, heading_shift=1)
        else:
            add_paragraphs(self._builder, text, first_line=None)
        self.indexed += self._builder.block_count > before + bool(name)

    def _fields(self, part: Message) -> None:
        """A delivery report: groups of headers."""
        self.found += 1
        self.indexed += 1
        for group in _children(part):
            lines = (f"{key}: {decode_words(str(value))}" for key, value in group.raw_items())
            self._builder.paragraph("\n".join(lines))

    def _encrypted(self, part: Message) -> None:
        self.found += 1
        name = file_name(part) or part.get_content_type()
        self._builder.paragraph(f"Encrypted part: {name}")
        self._builder.warn(
            f"The part {name} of the message is encrypted or sealed and is not read. "
            "Save the message without encryption to have it read."
        )

    def _text(self, part: Message) -> str:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        charset = part.get_param("charset")
        declared = charset if isinstance(charset, str) else None
        if part.get_content_type() == "text/html":
            declared = declared or declared_charset(data)
        try:
            decoded = decode(data, file_name(part) or self._filename, declared=declared)
        except ExtractionError as error:
            self._builder.warn(error.message)
            return ""
        for warning in decoded.warnings:
            self._builder.warn(warning)
        return decoded.text


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return (
        [child for child in payload if isinstance(child, Message)]
        if isinstance(payload, list)
        else []
    )


def _too_deep(filename: str, limits: Limits) -> ExtractionError:
    return ExtractionError(
        Fault.TOO_LARGE,
        f"{filename} holds messages nested more than {limits.max_depth} levels deep. "
        "Save the message that matters and upload that.",
    )
