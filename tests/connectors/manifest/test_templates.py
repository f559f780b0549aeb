"""Templates see data, and data is never a template."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from config.errors import RejectedError
from connectors.manifest.html import markdown_of
from connectors.manifest.templates import (
    as_text,
    checked_value,
    evaluate,
    plain,
    render,
    render_url,
)
from connectors.manifest.times import moment, written


def test_braces_in_data_stay_text() -> None:
    record = {"title": "{{ 7*7 }} {% raw %}", "items": "苍鹭", "nested": {"values": [1, 2]}}
    scope = {"record": record}
    assert render("{{ record.title }}!", scope) == "{{ 7*7 }} {% raw %}!"
    assert render("{{ record.items }} {{ record.nested.values }}", scope) == "苍鹭 1, 2"
    assert evaluate("title", scope) == "{{ 7*7 }} {% raw %}"
    assert plain({"q": "{{ record.title }}"}, scope) == {"q": "{{ 7*7 }} {% raw %}"}


@pytest.mark.parametrize(
    "text",
    [
        "{{ record.__class__.__mro__ }}",
        "{{ record['__class__'] }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ record.update({'a': 1}) }}",
        "{{ record.items() }}",
    ],
)
def test_nothing_leads_out_of_the_data(text: str) -> None:
    record = {"a": 1}
    with suppress(RejectedError):
        assert render(text, {"record": record}) == ""
    assert record == {"a": 1}


def test_what_is_missing_is_empty() -> None:
    scope = {"record": {"user": None}}
    assert render("{{ record.user.name }}{{ record.other.thing.deep }}", scope) == ""
    assert as_text(None) == ""
    assert as_text([True, {"a": "鹭"}, "", 1.5]) == 'true, {"a": "鹭"}, 1.5'


def test_parts_of_addresses_are_quoted_and_never_missing() -> None:
    scope = {"parent": {"id": "../../x?y#鹭", "empty": ""}}
    assert render_url("/a/{{ parent.id }}/b", scope) == "/a/..%2F..%2Fx%3Fy%23%E9%B9%AD/b"
    for text in ("/a/{{ parent.other }}", "/a/{{ parent.empty }}"):
        with pytest.raises(RejectedError):
            render_url(text, scope)


def test_single_expressions_keep_their_type_and_empty_ones_are_left_out() -> None:
    scope: dict[str, Any] = {"since": "", "limit": 7, "config": {"tags": ["a"], "on": False}}
    body = {
        "first": "{{ limit }}", "tags": "{{ config.tags }}", "on": "{{ config.on }}", "q": "",
        "filter": {"or": [{"at": {"gte": "{{ since }}"}}, {"b": {"gte": "{{ since }}"}}]},
    }  # fmt: skip
    assert plain(body, scope) == {"first": 7, "tags": ["a"], "on": False, "q": ""}
    known = plain(body, {**scope, "since": "2025-01-01"})
    assert known["filter"]["or"][0] == {"at": {"gte": "2025-01-01"}}


def test_wrong_expressions_are_told_where_they_stand() -> None:
    for text in ("a[", "{{ a", "{{ unknown }}", "{% for x in record %}"):
        with pytest.raises(ValueError, match=r"template|JMESPath"):
            checked_value(text)
    for text in ("{{ record.a / 0 }}", "{{ record | path('length(a)') }}", "length(a)"):
        with pytest.raises(RejectedError):
            evaluate(text, {"record": {"a": 1}})


def test_html_becomes_markdown() -> None:
    html = "<h2>Tēma</h2><p>A &amp; <b>b</b></p><ul><li>鹭</li></ul><script>alert(1)</script>"
    assert markdown_of(html) == "## Tēma\n\nA & **b**\n\n- 鹭"
    assert markdown_of("plain") == "plain"
    assert markdown_of("https://x.example/?a=1&amp;b=2") == "https://x.example/?a=1&b=2"
    assert "deep" in markdown_of("<div>" * 5000 + "deep" + "</div>" * 5000)
    assert render("{{ record.a | html }}", {"record": {"a": "<p>x</p>"}}) == "x"


def test_moments_of_every_kind() -> None:
    expected = datetime(2025, 1, 31, 12, tzinfo=UTC)
    for value in ("2025-01-31T12:00:00Z", "2025-01-31T13:00:00+01:00", 1738324800, 1738324800000,
                  "1738324800", 1738324800.0, "Fri, 31 Jan 2025 12:00:00 GMT"):  # fmt: skip
        assert moment(value) == expected
    assert moment("20250131") == datetime(2025, 1, 31, tzinfo=UTC)
    assert [moment(value) for value in (None, "", "soon", True, 10**30)] == [None] * 5
    forms = [written(expected, form) for form in ("iso", "date", "unix", "unix_ms")]
    assert forms == ["2025-01-31T12:00:00Z", "2025-01-31", 1738324800, 1738324800000]
    assert render("{{ 1738324800 | day }}{{ none | day }}", {}) == "2025-01-31"
