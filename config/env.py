"""The only reader of the process environment. Every variable is declared here once, with its help.

`docs/operations.md` carries the table that `settings_table()` prints; a test compares them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable as the operator sees it."""

    name: str
    default: str
    help: str


_declared: dict[str, Variable] = {}


def env_str(name: str, default: str = "", *, help: str) -> str:  # noqa: A002 - reads as documentation
    """The variable, or the content of the file named by `<NAME>_FILE`, or the default."""
    _declared[name] = Variable(name, default, help)
    value = os.environ.get(name)  # noqa: TID251 - the one place
    if value is not None:
        return value
    file = os.environ.get(f"{name}_FILE")  # noqa: TID251 - the one place
    if not file:
        return default
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        message = f"{name}_FILE names {file}, which cannot be read: {error.strerror}"
        raise ImproperlyConfigured(message) from error


def env_bool(name: str, *, default: bool, help: str) -> bool:  # noqa: A002 - reads as documentation
    """1/true/yes/on or 0/false/no/off."""
    value = env_str(name, "1" if default else "0", help=help).strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def env_int(name: str, default: int, *, help: str, minimum: int = 0) -> int:  # noqa: A002
    """A whole number of at least `minimum`."""
    value = env_str(name, str(default), help=help)
    if not value.strip().isdigit() or int(value) < minimum:
        raise ImproperlyConfigured(
            f"{name} must be a whole number from {minimum} up, not {value!r}"
        )
    return int(value)


def env_list(name: str, default: str = "", *, help: str) -> list[str]:  # noqa: A002
    """Comma-separated values."""
    return [part.strip() for part in env_str(name, default, help=help).split(",") if part.strip()]


def declared_variables() -> tuple[Variable, ...]:
    """Every variable that the settings have read, in order."""
    return tuple(_declared.values())


def settings_table() -> str:
    """The Markdown table of docs/operations.md."""
    rows = [f"| `{v.name}` | {_shown(v.default)} | {v.help} |" for v in _declared.values()]
    return "\n".join(["| variable | default | meaning |", "| --- | --- | --- |", *rows])


def _shown(default: str) -> str:
    home = str(Path(__file__).resolve().parent.parent)
    return f"`{default.replace(home + os.sep, '')}`" if default else ""


def child_environment(**extra: str) -> dict[str, str]:
    """The environment for a child process of ours."""
    return {**os.environ, **extra}  # noqa: TID251 - the one place


def set_default(name: str, value: str) -> None:
    """Give a variable a value unless the operator did (development profile of `make up`)."""
    os.environ.setdefault(name, value)  # noqa: TID251 - the one place
