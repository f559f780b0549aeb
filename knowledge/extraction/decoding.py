"""Bytes of text in any encoding → `str`: marks first, then UTF-8, then declared, then guessed."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from knowledge.extraction.base import ExtractionError, Fault
from knowledge.extraction.charset_guess import guess_charset

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What the names mean in practice: https://encoding.spec.whatwg.org/#names-and-labels
_ALIASES = {
    "ascii": "cp1252", "us-ascii": "cp1252", "latin1": "cp1252", "latin-1": "cp1252",
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030",
    "gb-2312": "gb18030", "gb_2312-80": "gb18030", "x-gbk": "gb18030", "cn-gb": "gb18030",
    "euc-kr": "cp949", "euckr": "cp949", "ks_c_5601-1987": "cp949", "ks_c_5601": "cp949",
    "ksc5601": "cp949", "windows-949": "cp949", "uhc": "cp949", "shift_jis": "cp932",
    "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932", "windows-31j": "cp932",
    "ms_kanji": "cp932", "big5": "cp950", "big-5": "cp950", "x-x-big5": "cp950",
    "iso-8859-9": "cp1254", "tis-620": "cp874", "iso-8859-11": "cp874", "windows-874": "cp874",
    "x-mac-roman": "mac_roman", "macintosh": "mac_roman", "x-euc-jp": "euc_jp",
    "iso-8859-8-i": "iso8859_8", "unicode": "utf-16", "utf8mb4": "utf-8", "cp-850": "cp850",
}  # fmt: skip
_SEVEN_BIT = frozenset({"iso2022_jp", "iso2022_kr", "hz", "utf_7", "iso2022_jp_2"})
_MULTIBYTE = frozenset({"gb18030", "cp950", "cp932", "cp949", "euc_jp", "big5hkscs"})
_SAMPLE_BYTES = 65_536
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_UTF8_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text with `\\n` line ends and no byte order mark, and how it was read."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, filename: str, *, declared: str | None = None) -> Decoded:
    """The text of `data`. `declared` is the charset the file or mail names, if any.

    Raises `ExtractionError(Fault.UNSUPPORTED)` when the bytes are not text at all.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _lenient(data[len(mark) :], encoding)
    sample = data[:_SAMPLE_BYTES]
    if b"\x00" in sample and not _has_stray_zeros(sample):
        wide = _wide_encoding(sample)
        if wide:
            return _lenient(data, wide)
    codec = _codec_name(declared)
    if data.isascii():
        return _decode_ascii(data, filename, codec)
    return _decode_bytes(data, filename, codec)


def _decode_ascii(data: bytes, filename: str, codec: str | None) -> Decoded:
    if codec is None and re.search(rb"\x1b\$[@B]|\x1b\$\([A-Z]", data[:_SAMPLE_BYTES]):
        codec = "iso2022_jp_2"
    if codec in _SEVEN_BIT:
        try:
            return _decoded(data.decode(codec), codec)
        except UnicodeDecodeError:
            pass
    _refuse_binary(data, filename, tolerated=0.2)
    return _decoded(data.decode("ascii"), "ascii")


def _decode_bytes(data: bytes, filename: str, codec: str | None) -> Decoded:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_legacy(data, filename, codec)
    if codec in _MULTIBYTE and len(_UTF8_CHARACTER.findall(data[:_SAMPLE_BYTES])) < 4:
        # A few CJK bytes may pass for UTF-8 by chance; then the declaration decides.
        try:
            return _decoded(data.decode(codec), codec)
        except UnicodeDecodeError:
            pass
    _refuse_binary(data, filename, tolerated=0.2)
    return _decoded(text, "utf-8")


def _decode_legacy(data: bytes, filename: str, codec: str | None) -> Decoded:
    _refuse_binary(data, filename, tolerated=0.03)
    if _is_mostly_utf8(data):
        return _lenient(data, "utf-8")
    if codec and codec not in _SEVEN_BIT and codec.replace("-", "_") != "utf_8":
        try:
            return _decoded(data.decode(codec), codec)
        except UnicodeDecodeError:
            pass
    guess = guess_charset(data)
    if guess:
        return _decoded(data.decode(guess), guess)
    return _lenient(data, "cp1252" if codec in {None, *_SEVEN_BIT} else codec or "cp1252")


def _decoded(text: str, encoding: str, warnings: tuple[str, ...] = ()) -> Decoded:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return Decoded(text, encoding, warnings)


def _lenient(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    lost = text.count("\ufffd") - data.count("\ufffd".encode(encoding, "replace"))
    if lost <= 0:
        return _decoded(text, encoding)
    what = "1 character is" if lost == 1 else f"{lost:,} characters are"
    warning = f"{what} not valid {encoding.upper()} and shown as \ufffd."
    return _decoded(text, encoding, (warning,))


def _codec_name(declared: str | None) -> str | None:
    """Python's name of a declared charset, None when it is unknown."""
    label = (declared or "").strip().strip("\"'").lower()
    try:
        name = codecs.lookup(_ALIASES.get(label, label)).name
    except (LookupError, ValueError):
        return None
    name = name.replace("-", "_")
    # Codecs such as `rot13` or `zlib` are not charsets, and wide ones would have been seen.
    return (
        None if name.startswith(("utf_16", "utf_32", "zlib", "rot", "idna", "punycode")) else name
    )


def _has_stray_zeros(sample: bytes) -> bool:
    """Whether the zero bytes are litter in text of single bytes, as in logs cut by a crash."""
    if sample.count(0) > len(sample) // 4:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, seen by where its zero bytes are."""
    size = len(sample) - len(sample) % 4
    zeros = [sample[offset:size:4].count(0) / max(size // 4, 1) for offset in range(4)]
    if size >= 8 and min(zeros[2:]) > 0.9 and zeros[0] < 0.2:
        return "utf-32-le"
    if size >= 8 and min(zeros[:2]) > 0.9 and zeros[3] < 0.2:
        return "utf-32-be"
    even = sample[: len(sample) - len(sample) % 2]
    scores = {name: _wide_score(even, name) for name in ("utf-16-le", "utf-16-be")}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0.9 else None


def _wide_score(sample: bytes, encoding: str) -> float:
    """How much of the sample is ordinary text of one script under this reading, 0 to 1."""
    text = sample.decode(encoding, "replace")
    if not text or "\x00" in text:
        return 0.0
    plain = sum(
        char.isprintable() or char in "\r\n\t"
        for char in text
        if char < "\ue000" or char > "\uf8ff"
    )
    rows = {ord(char) >> 8 for char in text}
    spaced = any(char in " \n\t,.:;0123456789" for char in text)
    spread = len(rows) / max(len(text), 1) if len(text) > 20 else 0.0
    return plain / len(text) - spread * 0.2 if spaced else 0.0


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether single bytes are broken in text that is UTF-8 otherwise."""
    characters = _UTF8_CHARACTER.findall(data)
    in_characters = sum(map(len, characters))
    stray = sum(byte > 0x7F for byte in data) - in_characters
    return bool(characters) and stray <= max(2, len(characters) // 10) and stray < in_characters


def _refuse_binary(data: bytes, filename: str, *, tolerated: float) -> None:
    sample = data[:_SAMPLE_BYTES]
    if len(_CONTROL.findall(sample)) > tolerated * len(sample):
        raise ExtractionError(
            Fault.UNSUPPORTED,
            f"{filename} holds binary data, not text, and its format is not known. "
            "Upload it as PDF, as an Office document or as text.",
        )
