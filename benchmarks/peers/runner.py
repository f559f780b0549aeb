"""Gives a task to a peer in its environment and reads what it measured."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.database import own_database
from benchmarks.peers.environments import FOLDER, NotRunError, environment
from benchmarks.peers.outcome import Measured, NotRun, Outcome
from providers.base import Vectors

PEERS = {
    "references": "bm25s and NumPy",
    "sql": "SQL by hand",
    "llamaindex": "LlamaIndex + pgvector",
    "haystack": "Haystack + pgvector",
    "chroma": "Chroma",
    "lancedb": "LanceDB",
    "txtai": "txtai",
}
LEFT_OUT = {
    "haikurag": NotRun(
        "haiku.rag",
        "its releases need Python 3.12, this project runs on 3.11; the last for 3.11 brings docling and torch",
    )
}
_ON_POSTGRES = {"sql", "llamaindex", "haystack"}
_TIMEOUT_S = 1800


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as the product cut it, with the text that is indexed and embedded."""

    document: str
    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """The same for every peer: passages and questions, both with their vectors, in order."""

    name: str
    language: str
    passages: Sequence[Passage]
    queries: Mapping[str, str]
    passage_vectors: Vectors
    query_vectors: Vectors

    def write(self, folder: Path, database_url: str = "") -> None:
        """Fill a task folder, as drive.py describes it."""
        rows = ({"id": str(n), "document": p.document, "text": p.text} for n, p in enumerate(self.passages))  # fmt: skip
        _write_lines(folder / "documents.jsonl", rows)
        questions = ({"id": key, "text": text} for key, text in self.queries.items())
        _write_lines(folder / "queries.jsonl", questions)
        np.save(folder / "passages.npy", self.passage_vectors.astype(np.float32))
        np.save(folder / "queries.npy", self.query_vectors.astype(np.float32))
        setup = {"language": self.language, "database_url": database_url}
        (folder / "setup.json").write_text(json.dumps(setup), encoding="utf-8")


def _write_lines(path: Path, rows: Any) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")


def measure_peer(name: str, task: Task) -> list[Outcome]:
    """Every variant of a peer on a task; what stops it becomes a row that says so."""
    with ExitStack() as stack:
        try:
            python = environment(name)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-")))
            address = stack.enter_context(own_database(f"peer_{name}")) if name in _ON_POSTGRES else ""  # fmt: skip
            task.write(folder, address)
            return run_task(python, FOLDER / name / "run.py", folder, task.queries)
        except NotRunError as error:
            return [NotRun(PEERS[name], str(error))]


def run_task(python: Path, run_py: Path, folder: Path, queries: Mapping[str, str]) -> list[Outcome]:
    """What run.py makes of a filled task folder. Raises `NotRunError`."""
    command = [str(python), "-I", str(FOLDER / "drive.py"), str(run_py), str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotRunError(f"not finished within {_TIMEOUT_S // 60} minutes") from None
    result = folder / "result.json"
    if done.returncode or not result.exists():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotRunError(f"failed: {lines[-1].strip() if lines else 'no message'}")
    read = json.loads(result.read_text(encoding="utf-8"))
    return [_outcome(row, read["version"], queries) for row in read["systems"]]


def _outcome(row: dict[str, Any], version: str, queries: Mapping[str, str]) -> Outcome:
    if "error" in row:
        return NotRun(row["system"], f"failed: {row['error']}")
    if missing := len(queries.keys() - row["rankings"].keys()):
        return NotRun(row["system"], f"failed: {missing} questions have no ranking")
    return Measured(version=version, **row)
