"""The supervisor, with small programs of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.env import child_environment

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]
SUPERVISE = """
import sys
from config import supervisor
from config.env import child_environment
supervisor._STOP_TIMEOUT_S = 1.0
supervisor._RESTART_WAIT_S = 0.1
programs = [
    supervisor.Program(f"program-{number}", [sys.executable, "-uc", code], child_environment())
    for number, code in enumerate(sys.argv[1:])
]
supervisor.Supervisor(programs).run()
print("ended in order")
"""
PATIENT = "import os, time; print('pid', os.getpid()); time.sleep(60)"
DEAF = "import signal, os, time; signal.signal(15, signal.SIG_IGN); print('pid', os.getpid()); time.sleep(60)"
CRASHING = "import os; print('pid', os.getpid()); raise SystemExit(3)"


def supervise(*programs: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-uc", SUPERVISE, *programs],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env=child_environment(PYTHONPATH=str(CHECKOUT)),
    )


def lines_until(process: subprocess.Popen[str], text: str, times: int = 1) -> list[str]:
    """The log until a line holds `text` for the n-th time."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if sum(text in row for row in seen) == times:
            return seen
    raise AssertionError("".join(seen))


def pids(lines: list[str]) -> list[int]:
    return [int(line.split()[-1]) for line in lines if "| pid " in line]


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_program(signum: signal.Signals) -> None:
    process = supervise(PATIENT, PATIENT)
    running = pids(lines_until(process, "| pid", times=2))
    process.send_signal(signum)
    output, _ = process.communicate(timeout=10)
    assert output.endswith("ended in order\n")
    assert not any(is_alive(pid) for pid in running)


def test_a_program_that_does_not_listen_is_killed() -> None:
    process = supervise(DEAF)
    running = pids(lines_until(process, "| pid"))
    process.terminate()
    process.communicate(timeout=10)
    assert not is_alive(running[0])


def test_a_crashed_program_is_started_again_and_the_others_run_on() -> None:
    process = supervise(CRASHING, PATIENT)
    seen = lines_until(process, "ended with code 3; starting it again", times=2)
    assert any("program-0 |" in line for line in seen)
    process.terminate()
    rest, _ = process.communicate(timeout=10)
    started = pids([*seen, *rest.splitlines()])
    assert len(set(started)) == len(started) >= 3


def test_programs_end_with_a_killed_supervisor() -> None:
    process = supervise(PATIENT)
    running = pids(lines_until(process, "| pid"))
    process.kill()
    process.communicate()
    ended = wait_for(lambda: not is_alive(running[0]))
    if not ended:
        os.kill(running[0], signal.SIGKILL)
    assert ended
