"""Searching several sources at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from config.errors import RejectedError
from connectors.base import LiveHit
from connectors.models import Connection
from connectors.services.live_search import SourceAnswer, State, search_sources
from tests.connectors.scripted import ScriptedConfig, SearchableConnector

Connect = Callable[..., Connection]


def states(answers: list[SourceAnswer]) -> dict[str, State]:
    return {answer.connection.name: answer.state for answer in answers}


def test_each_source_answers_fails_or_is_late_by_itself(connect: Connect) -> None:
    ended = threading.Event()

    def answer(config: ScriptedConfig, query: str) -> list[LiveHit]:
        if config.word == "late":
            ended.wait(5)
        if config.word == "refused":
            raise RejectedError("Not allowed.")
        if config.word == "broken":
            raise ZeroDivisionError
        return [LiveHit("1", query, "苍鹭涉水。")] * (3 if config.word == "good" else 0)

    SearchableConnector.answer = answer
    words = ("good", "late", "refused", "broken", "empty")
    sources = [connect("searchable", name=word, config={"word": word}) for word in words]
    began = time.perf_counter()
    answers = search_sources(sources, "herons", 2, timeout_s=0.5)
    spent = time.perf_counter() - began
    ended.set()
    assert [one.connection.name for one in answers] == list(words)
    assert states(answers) == {
        "good": State.OK,
        "late": State.TIMEOUT,
        "refused": State.ERROR,
        "broken": State.ERROR,
        "empty": State.EMPTY,
    }
    assert [hit.title for hit in answers[0].hits] == ["herons", "herons"], "the limit holds"
    assert answers[2].error == "Not allowed."
    assert "division" not in answers[3].error
    assert spent < 5, "the late one was not waited for"


def test_what_cannot_be_searched_says_so(connect: Connect) -> None:
    (answer,) = search_sources([connect()], "herons", 5, timeout_s=5)
    assert (answer.state, answer.error) == (
        State.ERROR,
        "Scripted cannot be searched at the source.",
    )
    assert search_sources([], "herons", 5, timeout_s=5) == []


@pytest.mark.parametrize("word", ["a", "b"])
def test_the_query_arrives_as_it_was_written(connect: Connect, word: str) -> None:
    SearchableConnector.answer = lambda _config, query: [LiveHit("1", query, "")]
    (answer,) = search_sources([connect("searchable")], f"“{word}” 苍鹭 &?", 5, timeout_s=5)
    assert answer.hits[0].title == f"“{word}” 苍鹭 &?"
