"""Values of a manifest: JMESPath into a record, or a Jinja template where braces stand.

Manifests are ours, records are not: a record only ever fills a template, whatever braces it holds itself.
Templates see plain data. A dot reads a field of it, never a method, and attributes that lead into Python are
refused by the sandbox.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

import jmespath
from jinja2 import (
    BaseLoader,
    ChainableUndefined,
    StrictUndefined,
    Template,
    TemplateError,
    Undefined,
    meta,
    nodes,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jmespath.exceptions import JMESPathError

from config.errors import RejectedError
from connectors.manifest.html import markdown_of
from connectors.manifest.times import moment

# What templates may name. `listed` is a record before its details were fetched, `ancestors` the parents from
# the nearest outwards.
NAMES = frozenset(
    {"record", "listed", "parent", "ancestors", "attached", "config", "each", "since", "query",
     "limit", "answer"}
)  # fmt: skip

_ONE_EXPRESSION = re.compile(r"\s*\{\{((?:(?!\{\{|\}\}).)*)\}\}\s*", re.DOTALL)
# What wrong data may cause in a template that is right.
_FAULTS = (
    TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip

Scope = Mapping[str, Any]


class _DataEnvironment(ImmutableSandboxedEnvironment):
    """Fields of a mapping are its items only: a field called `items` or `values` is no method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping):
            return self.getattr(obj, argument)
        return super().getitem(obj, argument)


def is_template(value: str) -> bool:
    """Whether a value is a template; else it is a path."""
    return "{{" in value or "{%" in value


def checked_template(text: str) -> str:
    """The text, when it is a template that can work. Raises `ValueError`."""
    try:
        tree = _TEXT.parse(text)
        _TEXT.compile(tree)
        unknown = meta.find_undeclared_variables(_TEXT.parse(text)) - NAMES
    except TemplateError as error:
        raise ValueError(f"is no template: {error}") from None
    if unknown:
        raise ValueError(
            f"there is no {', '.join(sorted(unknown))} in a template; known are "
            f"{', '.join(sorted(NAMES))}"
        )
    return text


def checked_path(text: str) -> str:
    """The text, when it is a JMESPath expression. Raises `ValueError`."""
    try:
        jmespath.compile(text)
    except JMESPathError as error:
        raise ValueError(f"is no JMESPath expression: {str(error).splitlines()[0]}") from None
    return text


def checked_value(text: str) -> str:
    """The text, when it is one of both. Raises `ValueError`."""
    return checked_template(text) if is_template(text) else checked_path(text)


def config_fields(text: str) -> Iterator[str]:
    """The fields of the configuration that a template names."""
    for node in _TEXT.parse(text).find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name) and node.node.name == "config":
            yield node.attr


def search(path: str, data: Any) -> Any:
    """What lies at a path. Raises `RejectedError` when the expression does not suit the data."""
    try:
        return jmespath.search(path, data)
    except JMESPathError as error:
        reason = str(error).splitlines()[0]
        raise RejectedError(f"{path!r} does not suit the data: {reason}.") from error


def evaluate(value: str, scope: Scope) -> Any:
    """A template's text, or what lies at a path in the scope's record."""
    return render(value, scope) if is_template(value) else search(value, scope.get("record"))


def render(text: str, scope: Scope) -> str:
    """A filled template. Raises `RejectedError`."""
    return _filled(_text_template(text), text, scope).strip()


def render_url(text: str, scope: Scope) -> str:
    """A filled path of an address: values are quoted, and none may be missing. Raises `RejectedError`."""
    return _filled(_url_template(text), text, scope)


def plain(value: Any, scope: Scope) -> Any:
    """Data with its templates filled. One that is a single expression keeps the type of its value, and what
    comes out empty is left out: a filter whose value is not known yet is no filter."""
    if isinstance(value, str):
        return _typed(value, scope) if is_template(value) else value
    if isinstance(value, Mapping):
        filled = {key: (plain(part, scope), part) for key, part in value.items()}
        return {key: one for key, (one, part) in filled.items() if not _is_empty(one, part)}
    if isinstance(value, list):
        return [one for part in value if not _is_empty(one := plain(part, scope), part)]
    return value


def as_text(value: Any) -> str:
    """A value as people read it."""
    if value is None or isinstance(value, Undefined):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(as_text, value)))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_empty(filled: Any, written: Any) -> bool:
    return filled in (None, "", {}, []) and filled != written


def _typed(text: str, scope: Scope) -> Any:
    match = _ONE_EXPRESSION.fullmatch(text)
    if match is None:
        return render(text, scope)
    try:
        return _expression(match[1])(**scope)
    except _FAULTS as error:
        raise RejectedError(f"{text!r} cannot be filled: {error}.") from error


def _filled(template: Template, text: str, scope: Scope) -> str:
    try:
        return template.render(scope)
    except _FAULTS as error:
        shown = " ".join(text.split())[:80]
        raise RejectedError(f"{shown!r} cannot be filled: {error}.") from error


def _quoted(value: Any) -> str:
    if value is None or value == "":
        raise ValueError("a part of the address is empty")
    # An unknown name raises here, as it is a StrictUndefined.
    return quote(as_text(str(value) if isinstance(value, Undefined) else value), safe="")


def _day(value: Any) -> str:
    found = moment(value)
    return found.date().isoformat() if found else ""


def _environment(finalize: Any, undefined: type[Undefined]) -> _DataEnvironment:
    environment = _DataEnvironment(
        loader=BaseLoader(),
        autoescape=False,  # the texts are Markdown
        undefined=undefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "html": lambda value: markdown_of(as_text(value)),
        "path": lambda value, path: search(path, value),
        "day": _day,
        "text": as_text,
    }
    return environment


_TEXT = _environment(as_text, ChainableUndefined)
_URL = _environment(_quoted, StrictUndefined)


@cache
def _text_template(text: str) -> Template:
    return _TEXT.from_string(text)


@cache
def _url_template(text: str) -> Template:
    return _URL.from_string(text)


@cache
def _expression(text: str) -> Any:
    return _TEXT.compile_expression(text)
