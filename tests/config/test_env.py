"""Reading the environment: defaults, files, plain errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "_declared", {})


def test_a_missing_variable_takes_its_default() -> None:
    assert env.env_str("GW_TEST", "fallback", help="…") == "fallback"


def test_a_set_variable_wins_even_when_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GW_TEST", "")
    assert env.env_str("GW_TEST", "fallback", help="…") == ""


def test_a_secret_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv("GW_TEST_FILE", str(tmp_path / "secret"))
    assert env.env_str("GW_TEST", help="…") == "s3cret"


def test_the_variable_itself_wins_over_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GW_TEST", "direct")
    monkeypatch.setenv("GW_TEST_FILE", str(tmp_path / "absent"))
    assert env.env_str("GW_TEST", help="…") == "direct"


def test_an_unreadable_secret_file_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GW_TEST_FILE", str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match=r"GW_TEST_FILE names .*absent"):
        env.env_str("GW_TEST", help="…")


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("", False)]
)
def test_booleans(monkeypatch: pytest.MonkeyPatch, text: str, *, value: bool) -> None:
    monkeypatch.setenv("GW_TEST", text)
    assert env.env_bool("GW_TEST", default=not value, help="…") is value


@pytest.mark.parametrize("text", ["maybe", "2", "none"])
def test_an_unclear_boolean_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GW_TEST", text)
    with pytest.raises(ImproperlyConfigured, match="GW_TEST must be 1 or 0"):
        env.env_bool("GW_TEST", default=False, help="…")


@pytest.mark.parametrize("text", ["", "eight", "-1", "1.5", "0"])
def test_a_number_out_of_bounds_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GW_TEST", text)
    with pytest.raises(ImproperlyConfigured, match="GW_TEST must be a whole number from 1 up"):
        env.env_int("GW_TEST", 3, help="…", minimum=1)


def test_lists_drop_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GW_TEST", " a, ,b ")
    assert env.env_list("GW_TEST", help="…") == ["a", "b"]


def test_everything_read_is_declared() -> None:
    env.env_str("GW_ONE", "1", help="first")
    env.env_bool("GW_TWO", default=True, help="second")
    assert [(v.name, v.default, v.help) for v in env.declared_variables()] == [
        ("GW_ONE", "1", "first"),
        ("GW_TWO", "1", "second"),
    ]
