"""Measures one peer, inside its own environment: `python -I drive.py RUN_PY TASK_FOLDER`.

A task folder holds `setup.json` (language, and a database_url where the peer needs one), `documents.jsonl`
(id, document, text: passages), `queries.jsonl` (id, text), `passages.npy` and `queries.npy` (float32, in
the order of the lines). What was measured goes to `result.json` in it. Only the standard library and
NumPy are imported, for nothing else of the project is installed here.

A run.py has `PACKAGES`, whose versions are reported, and `VARIANTS`: name → a function that makes a `Peer`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DEPTH = 100  # passages asked for, to be judged and timed
FEW = 10  # passages that an application asks for, to be timed
WARM_UP = 10  # questions asked before the clock runs

Vectors = NDArray[np.float32]


class Peer(Protocol):
    """One way to store and find passages."""

    notes: str

    def ingest(self, ids: list[str], texts: list[str], vectors: Vectors) -> None:
        """Store everything, indexes included; searching is possible when this returns."""

    def search(self, text: str, vector: Vectors, limit: int) -> list[str]:
        """Ids of passages, best first."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a peer may need: a folder to write to, a variant's number, the language, a database."""

    folder: Path
    number: int
    language: str
    database_url: str


@dataclass(frozen=True, slots=True)
class Task:
    """The folder, read."""

    owners: dict[str, str]
    texts: list[str]
    queries: dict[str, str]
    passage_vectors: Vectors
    query_vectors: Vectors

    @classmethod
    def read(cls, folder: Path) -> Task:
        """Read a task folder."""
        documents, queries = _lines(folder / "documents.jsonl"), _lines(folder / "queries.jsonl")
        return cls(
            {row["id"]: row["document"] for row in documents},
            [row["text"] for row in documents],
            {row["id"]: row["text"] for row in queries},
            np.load(folder / "passages.npy"),
            np.load(folder / "queries.npy"),
        )


def main(run_py: Path, folder: Path) -> None:
    """Measure every variant; one that fails leaves its error in the result and the others whole."""
    module, task = _load(run_py), Task.read(folder)
    setup = json.loads((folder / "setup.json").read_text(encoding="utf-8"))
    systems = []
    for number, (name, create) in enumerate(module.VARIANTS.items()):
        work = folder / f"work-{number}"
        work.mkdir()
        made = Setup(work, number, setup["language"], setup.get("database_url", ""))
        try:
            systems.append({"system": name, **_measure(create(made), task)})
        except Exception as error:  # noqa: BLE001 - whatever it is becomes this variant's result
            reason = (str(error).strip() or "no message").splitlines()[0]
            systems.append({"system": name, "error": f"{type(error).__name__}: {reason}"})
    versions = ", ".join(f"{package} {version(package)}" for package in module.PACKAGES)
    result = {"version": versions, "systems": systems}
    (folder / "result.json").write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")


def _load(run_py: Path) -> Any:
    spec = importlib.util.spec_from_file_location("peer_run", run_py)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{run_py} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _measure(peer: Peer, task: Task) -> dict[str, Any]:
    started = time.perf_counter()
    peer.ingest(list(task.owners), task.texts, task.passage_vectors)
    ingest_s = time.perf_counter() - started
    for text, vector in list(zip(task.queries.values(), task.query_vectors, strict=True))[:WARM_UP]:
        peer.search(text, vector, DEPTH)
    query_ms, rankings = _ask_all(peer, task, DEPTH)
    few_ms, _ = _ask_all(peer, task, FEW)
    return {
        "ingest_s": ingest_s,
        "query_ms": query_ms,
        "few_ms": few_ms,
        "rankings": rankings,
        "notes": peer.notes,
        "keyword_empty": _keyword_empty(peer, task.queries),
    }


def _ask_all(peer: Peer, task: Task, limit: int) -> tuple[list[float], dict[str, list[str]]]:
    """Milliseconds of each question, and its documents by their best passage."""
    query_ms, rankings = [], {}
    for (key, text), vector in zip(task.queries.items(), task.query_vectors, strict=True):
        started = time.perf_counter()
        found = peer.search(text, vector, limit)
        query_ms.append((time.perf_counter() - started) * 1000)
        rankings[key] = list(dict.fromkeys(task.owners[passage] for passage in found))
    return query_ms, rankings


def _keyword_empty(peer: Peer, queries: Mapping[str, str]) -> int | None:
    """For how many questions the words alone find nothing; None where a peer cannot tell."""
    count: Callable[[str], int] | None = getattr(peer, "keyword_hits", None)
    return sum(count(text) == 0 for text in queries.values()) if count else None


def _lines(path: Path) -> list[dict[str, str]]:
    # Not splitlines: JSON strings may hold line separators of Unicode as they are.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
