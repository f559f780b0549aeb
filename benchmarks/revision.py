"""Which code was measured."""

from __future__ import annotations

import subprocess

from benchmarks.ground import ROOT


def revision() -> str:
    """The commit, with `+` when files differ from it; empty outside a checkout."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - whichever git is here
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
