"""HTML inside a record as Markdown, to stand in one text with other fields."""

from __future__ import annotations

import re
from html import unescape

from bs4 import BeautifulSoup
from markdownify import ATX, MarkdownConverter

_WITHOUT_TEXT = ("script", "style", "template", "noscript", "head")
_BLANK_LINES = re.compile(r"\n{3,}")


def markdown_of(html: str) -> str:
    """Headings, lists, tables and links are kept; of HTML too deeply nested, the text."""
    if "<" not in html:
        return unescape(html).strip()
    soup = BeautifulSoup(html, "lxml")
    for element in soup(_WITHOUT_TEXT):
        element.decompose()
    try:
        converter = MarkdownConverter(
            heading_style=ATX, escape_underscores=False, escape_asterisks=False, bullets="-"
        )
        text: str = converter.convert_soup(soup)
    except RecursionError:
        text = soup.get_text("\n")
    return _BLANK_LINES.sub("\n\n", text).strip()
