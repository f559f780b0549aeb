"""Runs the processes of one installation side by side: merged logs, restart on a crash, clean stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

_COLORS = ("36", "32", "33", "35", "34")
_STOP_TIMEOUT_S = 15.0
_RESTART_WAIT_S = 1.0
_LONGEST_RESTART_WAIT_S = 30.0
_STABLE_AFTER_S = 60.0


@dataclass(slots=True)
class Program:
    """One long-running command; `environment` is complete."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[str] | None = field(default=None, init=False)


class Supervisor:
    """Owns its programs from start to stop. `run` returns when it is told to stop by a signal."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._printing = threading.Lock()
        self._width = max(len(program.name) for program in programs)

    def run(self) -> None:
        """Start everything and keep it running until SIGINT, SIGTERM or SIGHUP."""
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, self._on_signal)
        threads = [
            threading.Thread(target=self._keep_running, args=(program, number), daemon=True)
            for number, program in enumerate(self._programs)
        ]
        for thread in threads:
            thread.start()
        self._stopping.wait()
        self._stop_all()
        for thread in threads:
            thread.join(timeout=2)

    def is_stopping(self) -> bool:
        """Whether the end has begun."""
        return self._stopping.is_set()

    def say(self, name: str, line: str, number: int = 0) -> None:
        """Print one line of the merged log."""
        stamp = time.strftime("%H:%M:%S")
        label = f"{stamp} {name:<{self._width}} |"
        if sys.stdout.isatty():
            label = f"\033[{_COLORS[number % len(_COLORS)]}m{label}\033[0m"
        # A closed terminal must not keep the programs from being stopped in order.
        with self._printing, contextlib.suppress(OSError):
            sys.stdout.write(f"{label} {line}\n")
            sys.stdout.flush()

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def _keep_running(self, program: Program, number: int) -> None:
        wait_s = _RESTART_WAIT_S
        while True:
            with self._starting:  # so that a stop sees either no process or a complete one
                if self._stopping.is_set():
                    return
                process = program.process = _spawn(program)
            began = time.monotonic()
            for line in process.stdout or ():
                self.say(program.name, line.rstrip("\n"), number)
            code = process.wait()
            if self._stopping.is_set():
                return
            wait_s = _RESTART_WAIT_S if time.monotonic() - began > _STABLE_AFTER_S else wait_s
            self.say(
                program.name, f"ended with code {code}; starting it again in {wait_s:.0f} s", number
            )
            self._stopping.wait(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_RESTART_WAIT_S)

    def _stop_all(self) -> None:
        with self._starting:
            running = [p.process for p in self._programs if p.process and p.process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.1, deadline - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what is left of its group


def _spawn(program: Program) -> subprocess.Popen[str]:
    # Where the system can, a program ends with its supervisor even if that is killed outright.
    setpriv = shutil.which("setpriv")
    prefix = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    return subprocess.Popen(  # noqa: S603 - our own commands
        [*prefix, *program.command],
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches the supervisor alone, which stops in order
    )
