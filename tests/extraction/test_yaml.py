"""YAML → readable text."""

from __future__ import annotations

import pytest

from knowledge.extraction.base import BlockKind, ExtractionError, Fault
from tests.extraction.reading import block_of, read, row_of, texts


def test_values_as_written_with_paths_lines_and_comments() -> None:
    extracted = read(
        "yaml",
        "# Owner: ops\nname: web\nspec:\n  # raised in May\n  replicas: 03\n  on: yes\n"
        "  since: 2026-05-01\n# the end\n",
    )
    assert texts(extracted) == [
        "Owner: ops",
        "name: web",
        "raised in May",
        "spec.replicas: 03\nspec.on: yes\nspec.since: 2026-05-01",
        "the end",
    ]
    assert block_of(extracted, "spec.on").line == 3
    assert extracted.title == "web"


def test_many_documents() -> None:
    extracted = read("yaml", "a: 1\n---\n- x\n- y: 2\n---\n")
    assert texts(extracted) == ["a: 1", "[1]: x\n[2].y: 2"]
    assert extracted.title == ""


def test_aliases_and_merges() -> None:
    extracted = read("yaml", "base: &b\n  port: 80\nweb:\n  <<: *b\n  host: x\n")
    assert "web.port: 80\nweb.host: x" in extracted.text


def test_unknown_tags_build_nothing() -> None:
    extracted = read("yaml", "a: !Ref Bucket\nb: !!python/object/apply:os.system [echo]\n")
    assert extracted.text == "a: Bucket\nb: echo".replace("\n", "\n\n")


def test_comments_of_a_script_are_not_said_twice() -> None:
    extracted = read("yaml", "run: |\n  # install\n  make\nnext: 1\n")
    assert extracted.text.count("# install") == 1
    assert extracted.text.count("install") == 1


def test_records_are_a_table() -> None:
    extracted = read("yaml", "hosts:\n- {name: a, ip: 1.1.1.1}\n- {name: b, ip: 2.2.2.2}\n")
    assert row_of(extracted, "2.2.2.2") == {"name": "b", "ip": "2.2.2.2"}


def test_template_is_kept_as_written() -> None:
    extracted = read("yaml", "a: {{ .Values.a }}\n  b: [\n")
    assert texts(extracted, BlockKind.CODE) == ["a: {{ .Values.a }}\n  b: ["]
    assert extracted.warnings == (
        "The file is not valid YAML (line 2); it is kept as it is written.",
    )


@pytest.mark.parametrize(
    "data",
    [
        "[" * 5000,
        "- " * 5000 + "x",
        "a: &a [1]\n" + "".join(f"{b}: &{b} [*{a},*{a}]\n" for a, b in zip("abcdefghijklmnopqrstu", "bcdefghijklmnopqrstuv", strict=True)),
        "&a [*a]",
    ],
    ids=["brackets", "dashes", "aliases", "endless"],
)  # fmt: skip
def test_bombs_are_refused(data: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        read("yaml", data)
    assert caught.value.fault is Fault.TOO_LARGE
