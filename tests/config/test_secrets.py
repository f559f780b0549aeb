"""What the database holds in trust."""

from __future__ import annotations

from typing import Any

import pytest

from config.secrets import SealedError, reseal, seal, unseal

VALUE = {"token": "s3cr3t-value", "expires_at": 1.5, "name": "鹭"}


def test_what_is_sealed_is_unreadable_and_comes_back(settings: Any) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["one"]
    text = seal(VALUE)
    assert "s3cr3t" not in text
    assert seal(VALUE) != text, "nobody sees that two are the same"
    assert unseal(text) == VALUE


def test_without_keys_the_secret_key_serves(settings: Any) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = []
    text = seal(VALUE)
    settings.GROUNDWORK_ENCRYPTION_KEYS = [settings.SECRET_KEY]
    assert unseal(text) == VALUE


def test_a_key_is_replaced_in_three_steps(settings: Any) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["old"]
    text = seal(VALUE)
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new", "old"]
    assert unseal(text) == VALUE
    rotated = reseal(text)
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new"]
    assert unseal(rotated) == VALUE
    with pytest.raises(SealedError):
        unseal(text)


@pytest.mark.parametrize("open_it", [unseal, reseal])
def test_another_key_says_what_to_do(settings: Any, open_it: Any) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["one"]
    text = seal(VALUE)
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["two", "three"]
    with pytest.raises(SealedError, match="GROUNDWORK_ENCRYPTION_KEYS"):
        open_it(text)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-4], lambda text: "A" + text[1:], lambda _t: "鹭"]
)
def test_changed_text_is_refused(change: Any) -> None:
    with pytest.raises(SealedError):
        unseal(change(seal(VALUE)))
