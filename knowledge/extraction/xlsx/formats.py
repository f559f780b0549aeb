"""Numbers as Excel shows them: dates, percentages, currencies, units, leading zeros.

Dates are written in ISO form whatever their format, and digits are not grouped, so that `1599.99`
and `2027-12-15` are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import regex
from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

# Dates of the Chinese, Japanese and Korean editions, whose formats are not in the file.
_EAST_ASIAN_DATES = frozenset({*range(27, 37), *range(50, 59)})
_TOKEN = regex.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.'
    r"|(?P<mask>[#0?.,]+)|(?P<percent>%)|(?P<scientific>[eE][+-])|(?P<plain>.)",
    regex.DOTALL,
)
_MAX_DECIMALS = 15


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """What a format code adds to a number. `decimals` is None where Excel shows as many as needed."""

    is_date: bool = False
    is_duration: bool = False
    is_percent: bool = False
    decimals: int | None = None
    min_digits: int = 1
    thousands: int = 0  # how many times the shown number is divided by 1000
    prefix: str = ""
    suffix: str = ""


GENERAL = NumberFormat()


def parse_format(code: str | None, format_id: int) -> NumberFormat:
    """The format of a code in the file, or of one of the built-in numbers."""
    if code is None:
        code = BUILTIN_FORMATS.get(format_id, "General")
        if format_id in _EAST_ASIAN_DATES:
            return NumberFormat(is_date=True)
    if code.lower() in {"general", "@", "standard", ""}:
        return GENERAL
    if is_timedelta_format(code):
        return NumberFormat(is_duration=True)
    if is_date_format(code):
        return NumberFormat(is_date=True)
    return _parse_number_format(code.split(";")[0])


def show_number(text: str, number_format: NumberFormat, *, from_1904: bool) -> str:
    """A stored number as a reader sees it; a text that is no number stays as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    if number_format.is_duration:
        return _duration(value)
    if number_format.is_date:
        return _date(value, from_1904=from_1904) or _plain(value, text)
    if number_format.is_percent:
        decimals = max(number_format.decimals or 0, 2)
        shown = _trimmed(f"{value * 100:.{decimals}f}")
        return f"{shown}%"
    shown = _plain(value, text)
    if number_format.decimals is not None:
        shown = f"{value / 1000**number_format.thousands:.{number_format.decimals}f}"
    sign, digits = ("-", shown[1:]) if shown.startswith("-") else ("", shown)
    if number_format.min_digits > 1 and digits.isdigit():
        digits = digits.zfill(number_format.min_digits)
    return f"{sign}{number_format.prefix}{digits}{number_format.suffix}"


def _parse_number_format(section: str) -> NumberFormat:
    masks: list[str] = []
    prefix = suffix = ""
    is_percent = False
    for token in _TOKEN.finditer(section):
        if token["scientific"] or (token["mask"] and "?" in token["mask"]):
            return GENERAL
        if token["mask"]:
            if suffix.strip():
                return GENERAL  # digits with words between them, as `0 "feet" 0 "inches"`
            masks.append(token["mask"])
        elif token["percent"]:
            is_percent = True
        else:
            literal = (
                token["quoted"] or token["escaped"] or token["currency"] or token["plain"] or ""
            )
            literal = "" if literal in {"(", ")", "-"} and token["quoted"] is None else literal
            prefix, suffix = (prefix, suffix + literal) if masks else (prefix + literal, suffix)
    mask = "".join(masks)
    if not mask:
        return GENERAL
    whole, _, fraction = mask.partition(".")
    return NumberFormat(
        is_percent=is_percent,
        decimals=min(fraction.count("0") + fraction.count("#"), _MAX_DECIMALS),
        min_digits=whole.count("0") if set(whole) == {"0"} else 1,
        thousands=len(mask) - len(mask.rstrip(",")),
        prefix=prefix.lstrip(),
        suffix=suffix.rstrip(),
    )


def _plain(value: float, text: str) -> str:
    """A number without a format: no `.0`, no noise of its binary form."""
    if text.lstrip("-").isdigit():
        return text
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    shown = f"{value:.15g}"
    return (
        shown
        if "e" not in shown or abs(value) < 1e-9 or abs(value) >= 1e15
        else f"{value:.12f}".rstrip("0")
    )


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _date(value: float, *, from_1904: bool) -> str:
    """ISO date, with the time where there is one; the time alone for values below a day."""
    try:
        moment = from_excel(value, CALENDAR_MAC_1904 if from_1904 else CALENDAR_WINDOWS_1900)
    except (OverflowError, ValueError):
        return ""
    if isinstance(moment, datetime):
        # Fractions of a day are rarely exact in binary: 06:14:59.9997 is a quarter past six.
        moment = (moment + timedelta(milliseconds=1)).replace(microsecond=0)
        if (moment.hour, moment.minute, moment.second) == (0, 0, 0):
            return moment.date().isoformat()
        return moment.isoformat(" ", timespec="seconds" if moment.second else "minutes")
    return _duration(value) if 0 <= value < 1 else ""


def _duration(value: float) -> str:
    seconds = round(abs(value) * 86_400)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    shown = f"{hours:02}:{minutes:02}" + (f":{rest:02}" if rest else "")
    return f"-{shown}" if value < 0 and seconds else shown
