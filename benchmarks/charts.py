"""Bars as small SVG files, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH = 760
_LABELS = 240  # of them for the labels at the left
_VALUES = 80  # and for the figures at the right
_BAR, _GAP, _BETWEEN, _HEAD = 16, 3, 14, 62
_COLORS = (
    ("#2563eb", "#60a5fa"),
    ("#0f766e", "#2dd4bf"),
    ("#b45309", "#fbbf24"),
    ("#9333ea", "#c084fc"),
    ("#be123c", "#fb7185"),
    ("#4b5563", "#9ca3af"),
)  # on light, on dark


@dataclass(frozen=True, slots=True)
class Group:
    """Bars that belong together; a series without a value here has no bar."""

    label: str
    values: dict[str, float]


def bar_chart(title: str, groups: Sequence[Group], digits: int = 1) -> str:
    """Horizontal bars by group, a colour for each series, the figure beside each bar."""
    series = list(dict.fromkeys(name for group in groups for name in group.values))
    longest = max((value for group in groups for value in group.values.values()), default=0.0)
    scale = (_WIDTH - _LABELS - _VALUES) / longest if longest > 0 else 0.0
    parts, y = [], _HEAD
    for group in groups:
        height = len(group.values) * (_BAR + _GAP)
        parts.append(_text(_LABELS - 10, y + height / 2 + 3, group.label, "end"))
        for name, value in group.values.items():
            width = max(1.0, value * scale)
            parts.append(
                f'<rect class="s{series.index(name) % len(_COLORS)}" x="{_LABELS}" y="{y}" '
                f'width="{width:.1f}" height="{_BAR}" rx="2"/>'
            )
            parts.append(_text(_LABELS + width + 6, y + _BAR - 4, f"{value:,.{digits}f}", "start"))
            y += _BAR + _GAP
        y += _BETWEEN
    return _page(title, y, [_text(10, 22, title, "start", "title"), *_legend(series), *parts])


def _legend(series: Sequence[str]) -> list[str]:
    parts, x = [], 10.0
    for number, name in enumerate(series):
        kind = number % len(_COLORS)
        parts.append(f'<rect class="s{kind}" x="{x:.0f}" y="34" width="12" height="12" rx="2"/>')
        parts.append(_text(x + 18, 45, name, "start"))
        x += 40 + 7.2 * len(name)
    return parts


def _text(x: float, y: float, content: str, anchor: str, kind: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def _page(title: str, height: float, parts: Sequence[str]) -> str:
    light = "".join(f".s{n}{{fill:{color}}}" for n, (color, _) in enumerate(_COLORS))
    dark = "".join(f".s{n}{{fill:{color}}}" for n, (_, color) in enumerate(_COLORS))
    style = (
        "text{font:13px system-ui,sans-serif;fill:#1f2937}.title{font-weight:600;font-size:15px}"
        f"{light}@media(prefers-color-scheme:dark){{text{{fill:#e5e7eb}}{dark}}}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title, {chr(34): "&quot;"})}">\n<style>{style}</style>\n{body}\n</svg>\n'
    )
