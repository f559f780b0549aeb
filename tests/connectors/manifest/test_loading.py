"""Manifests that are wrong, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.errors import InvalidInputError
from connectors.manifest.loading import parse_manifest, read_manifest
from tests.connectors.manifest.site import manifest, stream


def faults(data: Any) -> dict[str, str]:
    with pytest.raises(InvalidInputError) as caught:
        parse_manifest(data, "any.yml")
    assert caught.value.message == "any.yml is no valid manifest."
    return {fault.field: fault.message for fault in caught.value.errors}


def test_faults_name_their_place_in_the_file() -> None:
    wrong = stream("issue", mapping={"title": "title["}, colour="red", limit="many")
    found = faults(manifest(stream("project"), wrong))
    assert set(found) == {
        "streams[issue].mapping.title", "streams[issue].colour", "streams[issue].limit",
    }  # fmt: skip
    assert "JMESPath" in found["streams[issue].mapping.title"]
    assert faults({"kind": "any"})["name"] == "Field required."
    assert "the file" in faults([1])


@pytest.mark.parametrize(
    ("more", "place", "said"),
    [
        ({"pagination": {"style": "scroll"}}, "streams[issue].pagination", "link_header"),
        ({"pagination": {"style": "cursor"}}, "streams[issue].pagination.next", "required"),
        ({"path": "issues"}, "streams[issue]", "begins with /"),
        ({"graphql": "{ a }", "params": {"a": 1}}, "streams[issue]", "no params"),
        ({"body": {"a": 1}}, "streams[issue]", "method: POST"),
        ({"complete": True, "limit": 3}, "streams[issue]", "not complete"),
        ({"incremental": {"field": "updated"}}, "streams[issue]", "names a param"),
        ({"graphql": "{ a }", "incremental": {"field": "updated", "param": "since"}},
         "streams[issue]", "into its variables"),
        ({"mapping": {"title": "{{ record.a"}}, "streams[issue].mapping.title", "no template"),
        ({"mapping": {"title": "{{ rekord.a }}"}}, "streams[issue].mapping.title", "rekord"),
        ({"mapping": {"file": {"url": "u", "filename": "n"}}}, "streams[issue].mapping", "not both"),
        ({"parent": "nothing"}, "the file", "streams[issue].parent"),
        ({"each": "nothing"}, "the file", "streams[issue].each"),
        ({"params": {"a": "{{ config.nothing }}"}}, "the file", "streams[issue].params.a"),
    ],
)  # fmt: skip
def test_each_mistake_is_told(more: dict[str, Any], place: str, said: str) -> None:
    assert said in faults(manifest(stream("issue", **more)))[place]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"streams": [stream(), stream()]}, "issue stands there twice"),
        (
            {"streams": [stream("x"), stream("b", mapping={"prefix": "x"})]},
            "x stands there twice",
        ),
        (
            {"streams": [stream("a", mapping={"principals": ["p"]}), stream("b")]},
            "in every stream or in none",
        ),
        ({"rate_limit": "often"}, "couldn't parse"),
    ],
)  # fmt: skip
def test_parts_fit_each_other(more: dict[str, Any], said: str) -> None:
    assert said in faults(manifest(**more))["the file"]


def test_defaults_suit_their_fields() -> None:
    found = faults(manifest(config=[{"name": "a", "title": "A", "type": "list", "default": "x"}]))
    assert found["config[a]"] == "the default is no list."
    choice = {"name": "a", "title": "A", "choices": ["x"], "default": "y"}
    assert "choices" in faults(manifest(config=[choice]))["config[a]"]
    key = {"type": "api_key", "header": "X", "param": "x"}
    assert "not both" in faults(manifest(auth=[key]))["auth[api_key]"]


def test_files_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "any.yml"
    for text, said in (
        ("kind: any\nkind: any", "line 2: kind stands there twice"),
        ("kind: [", "cannot be read"),
        ("kind: other", "is no valid manifest"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=said):
            read_manifest(path)


def test_the_kind_is_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "other.yml"
    path.write_text(str(manifest()))  # YAML reads Python's literals of these kinds
    with pytest.raises(InvalidInputError) as caught:
        read_manifest(path)
    assert caught.value.errors[0].field == "kind"
