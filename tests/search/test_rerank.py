"""Reranking within a search: the order, what is said about it, and its time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from accounts.access import Actor
from config.errors import TransientError
from knowledge.models import KnowledgeBase
from providers.base import Reranker
from search.request import Mode
from search.services import rerank as operation
from tests.search.conftest import Ask
from tests.workers import Workers

NOTES = {
    "one.txt": "The heron stands in the reeds.",
    "two.txt": "A heron eats fish, frogs and mice.",
    "three.txt": "Herons build their nests in tall trees.",
}


class Scripted(Reranker):
    """Gives each text the score of the first key that it holds."""

    model = "scripted"

    def __init__(self, scores: dict[str, float | None]) -> None:
        self._scores = scores
        self.texts: list[str] = []

    def rerank(
        self, query: str, texts: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        del query, deadline
        self.texts = list(texts)
        return [next(score for key, score in self._scores.items() if key in text) for text in texts]


class Broken(Reranker):
    """A service that is down."""

    model = "broken"

    def rerank(
        self, query: str, texts: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        raise TransientError("The reranker does not answer.")


@pytest.fixture
def herons(keeper: Actor, base: KnowledgeBase, workers: Workers) -> None:
    for filename, text in NOTES.items():
        workers.ingest(keeper, base, text, filename)


def _names(outcome: object) -> list[str]:
    return [hit.chunk.document.filename for hit in outcome.hits]  # type: ignore[attr-defined]


def _use(monkeypatch: pytest.MonkeyPatch, reranker: Reranker) -> None:
    monkeypatch.setattr(operation, "reranker", lambda: reranker)


@pytest.mark.usefixtures("herons")
def test_the_passage_that_answers_comes_first(ask: Ask) -> None:
    outcome = ask("What does a heron feed on?", rerank=True, explain=True)
    assert _names(outcome)[0] == "two.txt"
    assert outcome.degraded == []
    assert outcome.hits[0].rerank is not None
    assert outcome.hits[0].rerank[0] == 1


@pytest.mark.usefixtures("herons")
def test_the_reranker_moves_a_passage_up(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    last = _names(ask("heron"))[-1]
    key = NOTES[last][:12]
    _use(monkeypatch, Scripted({key: 1.0, "": 0.0}))
    outcome = ask("heron", rerank=True)
    # Last of three by the first stage and first by the second: 0.5 × 0 + 0.5 × 1 is not below
    # the middle one's 0.5 × (less than 1) + 0.5 × 0.
    assert _names(outcome).index(last) < 2
    scores = [hit.fused.score for hit in outcome.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.usefixtures("herons")
def test_it_reads_the_title_with_the_passage(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted({"": 0.0})
    _use(monkeypatch, scripted)
    ask("heron", rerank=True)
    assert "two\nA heron eats fish, frogs and mice." in scripted.texts


@pytest.mark.usefixtures("herons")
def test_what_was_not_read_is_said(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, Scripted({"A heron eats": 1.0, "": None}))
    outcome = ask("heron", rerank=True)
    assert outcome.degraded == [
        ("rerank", "Ran out of time (deadline_ms): 1 of 3 passages were read.")
    ]
    assert len(outcome.hits) == 3


@pytest.mark.usefixtures("herons")
def test_a_failing_reranker_leaves_the_order(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _names(ask("heron"))
    _use(monkeypatch, Broken())
    outcome = ask("heron", rerank=True)
    assert _names(outcome) == before
    assert outcome.degraded == [("rerank", "The reranker does not answer.")]


@pytest.mark.usefixtures("herons")
def test_pages_of_a_reranked_search_do_not_overlap(ask: Ask) -> None:
    whole = _names(ask("heron", rerank=True))
    pages = [_names(ask("heron", rerank=True, limit=1, offset=n))[0] for n in range(3)]
    assert pages == whole


@pytest.mark.usefixtures("herons")
def test_names_are_not_reranked(ask: Ask) -> None:
    assert _names(ask("two", mode=Mode.FILENAME, rerank=True)) == ["two.txt"]
