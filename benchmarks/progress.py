"""Says on the standard error stream how far a long measurement is."""

from __future__ import annotations

import sys
import time

_EVERY_S = 5.0


class Progress:
    """Counts one step of known length; a line at most every few seconds, with the time that is left."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._done = label, total, 0
        self._started = self._spoke = time.monotonic()

    def advance(self) -> None:
        """One more is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._spoke >= _EVERY_S or self._done == self._total:
            self._spoke = now
            left_s = (now - self._started) / self._done * (self._total - self._done)
            say(f"{self._label}: {self._done:,} of {self._total:,}, {left_s:.0f} s left")


def say(line: str) -> None:
    """One line beside the tables."""
    print(line, file=sys.stderr, flush=True)
