"""A virtual environment for each peer, made when it is first asked for and kept under `.venvs`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.progress import say

FOLDER = Path(__file__).resolve().parent
VENVS = FOLDER / ".venvs"
MAX_BYTES = 1_500_000_000  # of installed packages
_FREE_BYTES = 3_000_000_000  # that have to be left on the disk before installing
_TIMEOUT_S = 1800


class NotRunError(RuntimeError):
    """A peer cannot be measured here; the message says why in one line."""


def environment(name: str) -> Path:
    """The Python of a peer's environment. Raises `NotRunError`."""
    requirements = FOLDER / name / "requirements.txt"
    home, mark = VENVS / name, VENVS / f"{name}.installed"
    digest = hashlib.sha256(f"{sys.version}\0{requirements.read_text()}".encode()).hexdigest()
    kept = mark.read_text().split("\n") if mark.exists() else [""]
    if kept[0] != digest:
        refusal = _install(name, home, requirements)
        mark.write_text(f"{digest}\n{refusal}")
        kept = [digest, refusal]
    if kept[1]:
        raise NotRunError(kept[1])
    return home / "bin" / "python"


def _install(name: str, home: Path, requirements: Path) -> str:
    """Make the environment anew; why it must not be used, or nothing."""
    say(f"{name}: installing {requirements.relative_to(FOLDER.parent)}")
    shutil.rmtree(home, ignore_errors=True)
    VENVS.mkdir(exist_ok=True)
    if shutil.disk_usage(VENVS).free < _FREE_BYTES:
        raise NotRunError("less than 3 GB are free on the disk")
    _run(sys.executable, "-m", "venv", str(home))
    python = str(home / "bin" / "python")
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", str(requirements))  # fmt: skip
    size = sum(path.lstat().st_size for path in home.rglob("*"))
    if size > MAX_BYTES:
        shutil.rmtree(home)
        return f"its packages take {size / 1e9:.1f} GB, more than {MAX_BYTES / 1e9:.1f} GB"
    return ""


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotRunError(f"not installed within {_TIMEOUT_S // 60} minutes") from None
    if done.returncode:
        raise NotRunError(f"cannot be installed: {_first_error(done.stderr)}")


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    # pip's last error names the requirement in a few words; the ones before it list every release.
    return (errors or lines or ["no message"])[-1]
