"""Reads a file in a child process, so that no file can crash, stall or fill the caller.

Not a security jail against a hostile parser: it bounds memory, time and output, and passes on no
environment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from knowledge.extraction.base import Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.detection import HEAD_BYTES, detect_format
from knowledge.extraction.wire import load_result
from knowledge.extraction.worker import dump_limits, extract_source

logger = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[2]
_LOGGED_BYTES = 2000
_SMALL_BYTES = 256 * 1024
# Killed by its CPU limit, or by the system or an allocator for want of memory.
_OUT_OF_TIME = frozenset({-signal.SIGXCPU})
_OUT_OF_MEMORY = frozenset({-signal.SIGKILL, -signal.SIGABRT})


def extract_file(path: Path, filename: str, limits: Limits | None = None) -> Extracted:
    """The text of the file at `path`, known to its owner as `filename`. Raises `ExtractionError`."""
    bounds = limits or Limits()
    if _is_small_plain_text(path, filename):
        with path.open("rb") as stream:
            return extract_source(Source(stream, filename, path.stat().st_size), bounds)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        code = _run(path.resolve(strict=True), filename, bounds, output, log)
        log.seek(0)
        notes = log.read(_LOGGED_BYTES).decode("utf-8", "replace").strip()
        if notes:
            logger.info("Extraction of a file said: %s", notes)
        output.seek(0)
        return _result(output.read(), code, filename, bounds)


def _is_small_plain_text(path: Path, filename: str) -> bool:
    """Whether a file needs no parser: decoding it and cutting it at empty lines is bounded work, done
    in a millisecond, where the child alone takes a hundred to start."""
    if Path(filename).suffix.lower() != ".txt" or path.stat().st_size > _SMALL_BYTES:
        return False
    with path.open("rb") as stream:
        try:
            found = detect_format(stream.read(HEAD_BYTES), filename, stream=stream)
        except ExtractionError:
            return False  # the child says why
    return found == "text"


def _run(
    path: Path, filename: str, limits: Limits, output: IO[bytes], log: IO[bytes]
) -> int | None:
    """Runs the child to its end; gives its exit code, or None when it took too long."""
    command = [
        sys.executable, "-P", "-m", "knowledge.extraction.worker",
        str(path), filename.replace("\x00", ""), dump_limits(limits),
    ]  # fmt: skip
    child = subprocess.Popen(  # noqa: S603 - the program is our own interpreter, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=log,
        cwd="/",
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": str(_ROOT)},
        start_new_session=True,
    )
    try:
        return child.wait(limits.timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _result(data: bytes, code: int | None, filename: str, limits: Limits) -> Extracted:
    if code is None or code in _OUT_OF_TIME:
        raise ExtractionError(
            Fault.TIMEOUT,
            f"Reading {filename} took longer than {limits.timeout_s:g} seconds. "
            "Split it into smaller files.",
        )
    if code in _OUT_OF_MEMORY:
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"Reading {filename} takes more memory than is allowed. Split it into smaller files.",
        )
    try:
        return load_result(data)
    except ValueError as error:
        raise ExtractionError(
            Fault.CORRUPT,
            f"{filename} is damaged: reading it failed. Open it in the program it comes from, "
            "save it again, and upload the new copy.",
        ) from error
