"""YAML, one or many documents → readable text: `path: value` lines, and the comments between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

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
from knowledge.extraction.code import add_code
from knowledge.extraction.decoding import Decoded, decode
from knowledge.extraction.flattening import Flattener, Value, too_deep

_TITLES = ("title", "name")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_VALUES = 2_000_000  # aliases may repeat a part without end
_COMMENT = re.compile(r"\s*#+ ?(.*)")
_COMPACT_DEPTH = re.compile(r"(?:[-?:] ){200}")
# The base loader builds no objects: it knows scalars, lists and mappings only.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class YamlExtractor(Extractor):
    """YAML. What is not valid (a template, say) is kept as it is written, with a warning."""

    mime_types: ClassVar[frozenset[str]] = frozenset(
        {"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}
    )
    suffixes: ClassVar[frozenset[str]] = frozenset({".yaml", ".yml"})

    def extract(self, source: Source, limits: Limits) -> Extracted:
        decoded = decode(source.stream.read(), source.filename)
        _refuse_depth(decoded.text, limits)
        try:
            documents = list(yaml.compose_all(decoded.text, Loader=_LOADER))
        except yaml.YAMLError as error:
            return _read_invalid(decoded, error, limits)
        builder = TextBuilder(limits)
        for warning in decoded.warnings:
            builder.warn(warning)
        reader = _Reader(builder, limits, decoded.text)
        titles = [reader.read(node) for node in documents]
        reader.finish()
        shown = reader.flattener.shown
        return builder.finish(
            Coverage("values", shown, shown), title=titles[0] if len(titles) == 1 else ""
        )


def _refuse_depth(text: str, limits: Limits) -> None:
    """Refuses what would overflow the stack of the parser, which counts no depth."""
    depth = deepest = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth = max(depth + (1 if mark in "[{" else -1), 0)
        deepest = max(deepest, depth)
    if deepest > 10 * limits.max_depth or _COMPACT_DEPTH.search(text):
        raise too_deep(limits)


def _read_invalid(decoded: Decoded, error: yaml.YAMLError, limits: Limits) -> Extracted:
    builder = TextBuilder(limits)
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1})" if mark else ""
    builder.warn(f"The file is not valid YAML{where}; it is kept as it is written.")
    for warning in decoded.warnings:
        builder.warn(warning)
    lines = add_code(builder, decoded.text)
    return builder.finish(Coverage("lines", lines, lines))


@dataclass(slots=True)
class _Comment:
    line: int
    text: str


class _Reader:
    """Walks the documents in step with the comment lines of the file."""

    def __init__(self, builder: TextBuilder, limits: Limits, text: str) -> None:
        self.flattener = Flattener(builder, limits)
        self._builder = builder
        self._limits = limits
        self._verbatim: set[str] = set()
        self._comments = [
            _Comment(number, match[1].strip())
            for number, line in enumerate(text.split("\n"), start=1)
            if (match := _COMMENT.fullmatch(line))
        ]

    def read(self, node: Node) -> str:
        """Adds one document; gives its title."""
        if _unfolded_size(node, {}, 0, self._limits) > _MAX_VALUES:
            raise ExtractionError(
                Fault.TOO_LARGE,
                f"The aliases of the file unfold to more than {_MAX_VALUES:,} values. "
                "Write out the parts that matter and upload that.",
            )
        if isinstance(node, MappingNode) and not _has_merge(node):
            title = ""
            for key, value in node.value:
                name, part = self._key(key, 0), self._build(value, 0)
                self._add({name: part}, key.start_mark.line + 1, _last_line(value))
                if name in _TITLES and isinstance(part, str):
                    title = title or part
            return title
        self._add(self._build(node, 0), node.start_mark.line + 1, _last_line(node))
        return ""

    def finish(self) -> None:
        """Adds the comments after the last value."""
        self._add_comments(None)

    def _add(self, value: Value, line: int, end: int) -> None:
        self._add_comments(end)  # those inside come first: they speak of what follows
        self.flattener.add(value, line=line)
        self._verbatim.clear()

    def _add_comments(self, before: int | None) -> None:
        due = [item for item in self._comments if before is None or item.line < before]
        self._comments = self._comments[len(due) :]
        # A script inside the data has comments of its own, which are shown with it.
        texts = [item.text for item in due if item.text not in self._verbatim]
        if due and texts:
            self._builder.paragraph("\n".join(texts), line=due[0].line)

    def _build(self, node: Node, depth: int) -> Value:
        if depth > self._limits.max_depth:
            raise too_deep(self._limits)
        if isinstance(node, MappingNode):
            return dict(self._iter_fields(node, depth + 1))
        if isinstance(node, SequenceNode):
            return [self._build(item, depth + 1) for item in node.value]
        assert isinstance(node, ScalarNode)  # noqa: S101 - YAML has no fourth kind
        return self._scalar(node)

    def _scalar(self, node: ScalarNode) -> str | None:
        text = str(node.value)
        if "\n" in text:
            self._verbatim |= {
                match[1].strip() for line in text.split("\n") if (match := _COMMENT.fullmatch(line))
            }
        return None if not node.style and text in _NULLS else text

    def _iter_fields(self, node: MappingNode, depth: int) -> Iterator[tuple[str, Value]]:
        for key, value in node.value:
            name, part = self._key(key, depth), self._build(value, depth)
            if name != "<<":
                yield name, part
                continue
            for source in part if isinstance(part, list) else [part]:
                yield from source.items() if isinstance(source, Mapping) else ()

    def _key(self, node: Node, depth: int) -> str:
        return str(node.value) if isinstance(node, ScalarNode) else str(self._build(node, depth))


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, SequenceNode) else []


def _unfolded_size(node: Node, known: dict[int, int], depth: int, limits: Limits) -> int:
    """How many values there are with every alias written out, found without doing so."""
    if depth > limits.max_depth:
        raise too_deep(limits)  # an alias within its own anchor ends here too
    if id(node) not in known:
        parts = (_unfolded_size(part, known, depth + 1, limits) for part in _children(node))
        known[id(node)] = 1 + sum(parts)
    return known[id(node)]


def _last_line(node: Node) -> int:
    """The line where the last scalar ends; the end mark lies behind the comments that follow."""
    while children := _children(node):
        node = children[-1]
    if isinstance(node, ScalarNode) and node.style in {"|", ">"}:
        return int(node.start_mark.line) + 1 + str(node.value).count("\n")
    return int(node.end_mark.line) + 1


def _has_merge(node: MappingNode) -> bool:
    return any(isinstance(key, ScalarNode) and key.value == "<<" for key, _ in node.value)
