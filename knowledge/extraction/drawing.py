"""Text in drawings that Word, Excel and PowerPoint share: shapes, charts and diagrams."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from knowledge.extraction.ooxml import RELATIONS_NAMESPACE, Package

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAX_CHART_VALUES = 200
_LINE_BREAK = f"{A}br"


def paragraph_text(paragraph: etree._Element) -> str:
    """The text of an `a:p`: its runs and fields, with line breaks."""
    nodes = paragraph.iter(f"{A}t", _LINE_BREAK)
    return "".join("\n" if node.tag == _LINE_BREAK else node.text or "" for node in nodes)


def body_text(body: etree._Element) -> str:
    """The text of a text body, a line for each paragraph."""
    lines = [paragraph_text(paragraph) for paragraph in body.iter(f"{A}p")]
    return "\n".join(line for line in lines if line.strip())


def chosen(node: etree._Element) -> etree._Element | None:
    """Of an `mc:AlternateContent` the one branch a reader sees: never both."""
    choice = node.find(f"{MC}Choice")
    return choice if choice is not None else node.find(f"{MC}Fallback")


def linked_texts(package: Package, part: str, node: etree._Element) -> Iterator[str]:
    """The text of charts and diagrams that are shown inside `node` of `part`."""
    for link in node.iter(f"{_C}chart", f"{_DGM}relIds"):
        is_chart = link.tag == f"{_C}chart"
        relation_id = link.get(f"{RELATIONS_NAMESPACE}{'id' if is_chart else 'dm'}")
        relation = package.relations(part).get(relation_id or "")
        root = package.xml(relation.target) if relation else None
        if root is not None:
            text = _chart_text(root) if is_chart else _diagram_text(root)
            if text:
                yield text


def _chart_text(chart: etree._Element) -> str:
    """Title, axes, and a line for each series: `name: category = value; …`."""
    lines = [body_text(title) for title in chart.iter(f"{_C}title")]
    for series in chart.iter(f"{_C}ser"):
        name = ", ".join(_points(series, "tx").values())
        categories = _points(series, "cat") or _points(series, "xVal")
        values = _points(series, "val") or _points(series, "yVal")
        pairs = [
            f"{categories[index]} = {_shown(value)}" if categories.get(index) else _shown(value)
            for index, value in values.items()
        ] or list(categories.values())
        lines.append(f"{name}: {'; '.join(pairs)}" if name else "; ".join(pairs))
    return "\n".join(line for line in lines if line.strip())


def _points(series: etree._Element, name: str) -> dict[str, str]:
    """The cached points of one side of a series, by index."""
    side = series.find(f"{_C}{name}")
    if side is None:
        return {}
    points: dict[str, str] = {}
    for point in side.iter(f"{_C}pt"):
        value = point.findtext(f"{_C}v", "").strip()
        index = point.get("idx", "")
        # Categories of several levels list the innermost first.
        points[index] = f"{value} {points[index]}" if index in points else value
        if len(points) >= _MAX_CHART_VALUES:
            break
    # A name may be given as a literal instead of a reference with its cache.
    literal = "".join(node.text or "" for node in side.iter(f"{_C}v")).strip()
    return points or ({"": literal} if literal else {})


def _shown(value: str) -> str:
    """A cached number without the noise of its binary form: 4.2999999999999998 is 4.3."""
    try:
        return f"{float(value):.12g}"
    except ValueError:
        return value


def _diagram_text(data: etree._Element) -> str:
    """The entries of a diagram (SmartArt), a line for each."""
    texts = [body_text(body) for body in data.iter(f"{_DGM}t")]
    return "\n".join(text for text in texts if text)
