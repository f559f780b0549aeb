"""The protocol between the benchmark and its peers, and rows that say why a peer was not run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation.sets import JudgedDocument, JudgedSet
from benchmarks.peers import environments, runner
from benchmarks.peers.differences import difference
from benchmarks.peers.environments import NotRunError
from benchmarks.peers.outcome import Measured, NotRun
from benchmarks.peers.report import SetOutcome, rows, table
from benchmarks.peers.runner import Passage, Task, run_task

# Ranks by the dot product, but knows of no passage to a question that says so.
COSINE = """
import numpy as np

PACKAGES = ("numpy",)


class Peer:
    notes = "dot product"

    def __init__(self, setup):
        assert setup.folder.is_dir() and setup.language == "en" and setup.database_url == "db"

    def ingest(self, ids, texts, vectors):
        self.ids, self.vectors = ids, vectors

    def search(self, text, vector, limit):
        order = np.argsort(-(self.vectors @ vector), kind="stable")
        return [] if text == "nothing" else [self.ids[place] for place in order[:limit]]

    def keyword_hits(self, text):
        return text.count("word")


class Broken(Peer):
    def ingest(self, ids, texts, vectors):
        raise ValueError("no such index\\nmore lines")


VARIANTS = {"Peer": Peer, "Broken": Broken}
"""

TASK = Task(
    name="tiny",
    language="en",
    # d1 was cut in two; a line separator inside a text must not become a line of the file.
    passages=(Passage("d1", "one\u2028two"), Passage("d2", "three"), Passage("d1", "four")),
    queries={"q1": "a word", "q2": "nothing"},
    passage_vectors=np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32),
    query_vectors=np.array([[0, 1], [1, 0]], np.float32),
)
JUDGED = JudgedSet(
    "tiny",
    "en",
    (
        JudgedDocument("d1", "", "one two four", "d1.txt"),
        JudgedDocument("d2", "", "three", "d2.txt"),
    ),
    TASK.queries,
    {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}},
    2,
)


def run(tmp_path: Path, run_py: str) -> list[Measured | NotRun]:
    folder = tmp_path / "task"
    folder.mkdir()
    TASK.write(folder, "db")
    (tmp_path / "run.py").write_text(run_py)
    return run_task(Path(sys.executable), tmp_path / "run.py", folder, TASK.queries)


def test_a_peer_ranks_documents_by_their_best_passage(tmp_path: Path) -> None:
    peer, _ = run(tmp_path, COSINE)
    assert isinstance(peer, Measured)
    # Passages rank d2, d1, d1: a document has the place of its first.
    assert peer.rankings == {"q1": ["d2", "d1"], "q2": []}
    assert peer.version == f"numpy {np.__version__}"
    assert peer.keyword_empty == 1
    assert len(peer.query_ms) == len(peer.few_ms) == 2
    assert peer.ingest_s is not None


def test_a_variant_that_fails_leaves_the_others(tmp_path: Path) -> None:
    peer, broken = run(tmp_path, COSINE)
    assert peer.system == "Peer"
    assert broken == NotRun("Broken", "failed: ValueError: no such index")


def test_a_peer_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotRunError, match="No module named 'absent_vector_store'"):
        run(tmp_path, "import absent_vector_store")


def test_a_ranking_for_every_question_is_expected() -> None:
    row = {
        "system": "Peer",
        "ingest_s": 1.0,
        "query_ms": [],
        "few_ms": [],
        "rankings": {"q1": []},
        "notes": "",
    }
    found = runner._outcome(row, "1", TASK.queries)
    assert found == NotRun("Peer", "failed: 1 questions have no ranking")


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_becomes_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "requirements.txt").write_text(f"{tmp_path}/absent.whl\n")
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setattr(environments, "VENVS", tmp_path / ".venvs")
    (found,) = runner.measure_peer("chroma", TASK)
    assert isinstance(found, NotRun)
    assert found.reason.startswith("cannot be installed: ")
    assert "absent.whl" in found.reason
    (row,) = rows([SetOutcome(JUDGED, 3, [found])])
    assert row == {
        "shape": "tiny",
        "size": 2,
        "system": "Chroma",
        "metric": "not run",
        "value": None,
        "unit": "",
        "reason": found.reason,
    }


@pytest.mark.slow
def test_packages_that_are_too_large_are_refused_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "requirements.txt").write_text("")
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.setattr(environments, "VENVS", tmp_path / ".venvs")
    monkeypatch.setattr(environments, "MAX_BYTES", 1000)
    with pytest.raises(NotRunError, match="its packages take"):
        environments.environment("chroma")
    assert not (tmp_path / ".venvs" / "chroma").exists()
    monkeypatch.setattr(environments, "_install", lambda *_: pytest.fail("installed again"))
    with pytest.raises(NotRunError, match="its packages take"):
        environments.environment("chroma")


def test_rows_and_table_hold_quality_and_times() -> None:
    measured = Measured(
        system="Peer",
        version="1",
        ingest_s=0.5,
        query_ms=[1.0, 3.0],
        few_ms=[1.0, 2.0],
        rankings={"q1": ["d2", "d1"], "q2": []},
        notes="",
        keyword_empty=1,
    )
    result = SetOutcome(JUDGED, 3, [measured, NotRun("Other", "too large")])
    found = {row["metric"]: (row["value"], row["unit"]) for row in rows([result])}
    # One answer in second place, 1 / log2(3), and one question without any.
    assert found == {
        "ndcg@10": (0.3155, ""),
        "recall@100": (0.5, ""),
        "ingest": (4.0, "documents/s"),
        "search_p50": (2.0, "ms"),
        "search_p95": (2.9, "ms"),
        "search_10_p50": (1.5, "ms"),
        "search_10_p95": (1.95, "ms"),
        "keyword_empty": (1, "questions"),
        "not run": (None, ""),
    }
    assert "tiny: 2 documents in 3 passages, 2 questions" in table(result)
    assert "Other: not run: too large" in table(result)


def test_a_difference_has_an_interval_over_the_questions() -> None:
    questions = [f"q{number}" for number in range(100)]
    wanted = {key: {"d1": 1.0} for key in questions}
    always = Measured("always", "", 1.0, [], [], {key: ["d1"] for key in questions}, "")
    in_half = {key: ["d1"] if number % 2 else ["d2"] for number, key in enumerate(questions)}
    half = Measured("half", "", 1.0, [], [], in_half, "")
    found = difference(always, half, wanted)
    assert found.mean == pytest.approx(0.5)
    # A share of one half among 100 questions has a standard error of 0.05.
    assert found.low == pytest.approx(0.4, abs=0.02)
    assert found.high == pytest.approx(0.6, abs=0.02)
    assert "chance" not in str(found)
    same = difference(half, half, wanted)
    assert (same.mean, same.low, same.high) == (0, 0, 0)
    assert "chance" in str(same)
