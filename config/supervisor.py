"""Runs the processes of one installation side by side: merged logs, restart on a crash, clean stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

_COLORS = ("36", "32", "33", "35", "34")
_STOP_TIMEOUT_S = 30.0
_RESTART_WAIT_S = 2.0


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
            thread.join(timeout=5)

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def _keep_running(self, program: Program, number: int) -> None:
        while not self._stopping.is_set():
            program.process = subprocess.Popen(  # noqa: S603 - our own commands
                program.command,
                env=program.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C reaches the supervisor alone, which stops in order
            )
            self._pump(program, number)
            code = program.process.wait()
            if not self._stopping.is_set():
                self._say(program.name, number, f"ended with code {code}; starting it again")
                self._stopping.wait(_RESTART_WAIT_S)

    def _pump(self, program: Program, number: int) -> None:
        if program.process is None or program.process.stdout is None:
            return
        for line in program.process.stdout:
            self._say(program.name, number, line.rstrip("\n"))

    def _say(self, name: str, number: int, line: str) -> None:
        stamp = time.strftime("%H:%M:%S")
        label = f"{stamp} {name:<{self._width}} |"
        if sys.stdout.isatty():
            label = f"\033[{_COLORS[number % len(_COLORS)]}m{label}\033[0m"
        sys.stdout.write(f"{label} {line}\n")
        sys.stdout.flush()

    def _stop_all(self) -> None:
        running = [p.process for p in self._programs if p.process and p.process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for process in running:
            try:
                process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
