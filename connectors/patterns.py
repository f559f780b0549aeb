"""Choosing among names by patterns, as people write them: `*.pdf`, `handbook/*`."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import PurePosixPath


def is_wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a path fits one of `include` (or there are none) and none of `exclude`."""
    return (not include or _matches(name, include)) and not _matches(name, exclude)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    last = PurePosixPath(name).name
    return any(
        fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(last, pattern)
        for pattern in patterns
    )
