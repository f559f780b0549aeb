"""What the headers of a message say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.utils import getaddresses, parsedate_to_datetime
from hashlib import sha256
from typing import Any

from connectors.native.imap.mailbox import header_bytes

_REPLY = re.compile(
    r"^(?:(?:re|aw|fwd?|wg|sv|tr|回复|答复|回覆|答覆|转发|轉寄|轉發)(?:\[\d+\])?\s*[::]\s*)+",
    re.IGNORECASE,
)
_GB2312 = re.compile(r"=\?gb(?:2312|k)\?", re.IGNORECASE)  # often says less than it uses
_PASSING_FLAGS = frozenset({"\\Seen", "\\Recent", "\\Deleted", "\\Draft"})


@dataclass(frozen=True, slots=True)
class Summary:
    """One message without its body. `digest` is of what never changes in it."""

    digest: str
    size: int
    subject: str
    message_id: str
    sender: str
    recipients: str
    copies: str
    thread: str  # Message-ID of the first message
    topic: str  # what a reply replies to
    moment: datetime | None
    flags: list[str]

    @property
    def author(self) -> str:
        """The sender's name, or their address."""
        name, address = next(iter(getaddresses([self.sender])), ("", ""))
        return name or address


def summary_of(facts: Mapping[bytes, Any]) -> Summary:
    """Reads what the server has answered for a message."""
    raw, size = header_bytes(facts), int(facts[b"RFC822.SIZE"])
    headers = _parsed(raw)
    subject = _decoded(headers["Subject"])
    message_id = _decoded(headers["Message-ID"]).strip("<>")
    earlier = f"{headers['References'] or ''} {headers['In-Reply-To'] or ''}".split()
    flags = {flag.decode(errors="replace") for flag in facts.get(b"FLAGS", ())}
    # Servers differ in blanks and in the order of fields.
    lines = sorted(b"".join(line.split()) for line in re.split(rb"\r?\n(?![ \t])", raw))
    return Summary(
        digest=sha256(b"\n".join([*lines, str(size).encode()])).hexdigest()[:32],
        size=size,
        subject=subject,
        message_id=message_id,
        sender=_decoded(headers["From"]),
        recipients=_decoded(headers["To"]),
        copies=_decoded(headers["Cc"]),
        thread=(earlier[0] if earlier else message_id).strip("<>"),
        topic=_REPLY.sub("", subject) if earlier else "",
        moment=_moment(headers["Date"]) or facts.get(b"INTERNALDATE"),
        flags=sorted(flags - _PASSING_FLAGS),
    )


def _parsed(raw: bytes) -> Message:
    """Headers, also such as hold plain UTF-8 or GB 18030 although they should not."""
    for encoding in ("utf-8", "gb18030"):
        with suppress(UnicodeError):
            return HeaderParser().parsestr(raw.decode(encoding))
    return HeaderParser().parsestr(raw.decode("latin-1"))


def _decoded(value: Any) -> str:
    text = _GB2312.sub("=?gb18030?", str(value or ""))
    with suppress(LookupError, ValueError):  # no such encoding, or other bytes than it has
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def _moment(text: Any) -> datetime | None:
    try:
        moment = parsedate_to_datetime(str(text))
    except (TypeError, ValueError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
