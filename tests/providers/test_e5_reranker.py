"""The local reranker: MaxSim as computed by hand, its deadline, what it keeps, what its scores mean."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from numpy.testing import assert_allclose

from providers.backends.e5 import reranker as module
from providers.backends.e5.correction import LanguageCorrection, unit
from providers.backends.e5.embedder import LocalE5Embedder
from providers.backends.e5.reranker import LocalE5Reranker
from providers.backends.e5.states import PackedStates, RecentStates
from providers.backends.e5.tokenizer import CONTENT_TOKENS
from providers.base import Vectors

slow = pytest.mark.slow


class WordTokenizer:
    """One token per word; "?" is the only punctuation."""

    def __init__(self) -> None:
        self.vocabulary: list[str] = []

    def encode(self, text: str) -> list[int]:
        for word in text.replace(":", " :").split():
            if word not in self.vocabulary:
                self.vocabulary.append(word)
        return [self.vocabulary.index(word) for word in text.replace(":", " :").split()]

    def words_among(self, ids: Sequence[int]) -> Vectors:
        return np.array([self.vocabulary[index] not in {"?", ":"} for index in ids])


class FakeNetwork:
    """A word's state is a vector of its own; reading takes `cost_s` of the scripted clock."""

    def __init__(self, clock: Clock, cost_s: float = 1.0) -> None:
        self.tokenizer = WordTokenizer()
        self.read: list[int] = []  # lengths of the texts that were read
        self._clock = clock
        self._cost_s = cost_s

    def states(self, ids: Sequence[int]) -> Vectors:
        self.read.append(len(ids))
        self._clock.now += self._cost_s
        return np.stack([state_of(self.tokenizer.vocabulary[index]) for index in ids])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def state_of(word: str) -> Vectors:
    seed = int.from_bytes(word.encode(), "big") % 2**32
    return np.random.default_rng(seed).normal(size=384).astype(np.float32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    return clock


@pytest.fixture
def network(clock: Clock) -> FakeNetwork:
    return FakeNetwork(clock)


@pytest.fixture
def reranker(network: FakeNetwork) -> LocalE5Reranker:
    return _reranker(network)


def _reranker(network: FakeNetwork, **options: int) -> LocalE5Reranker:
    embedder = type("Embedder", (), {"network": network})()
    return LocalE5Reranker(cast("LocalE5Embedder", embedder), **options)


def _best_likenesses(question: list[str], passage: list[str]) -> list[float]:
    """The definition, word by word."""
    correction = LanguageCorrection.load()

    def corrected(word: str, mean: Vectors) -> Vectors:
        centred = state_of(word) / np.linalg.norm(state_of(word)) - mean
        for direction in correction.directions:
            centred = centred - float(centred @ direction) * direction
        result: Vectors = centred / np.linalg.norm(centred)
        return result

    return [
        max(
            float(
                corrected(asked, correction.query_mean) @ corrected(word, correction.passage_mean)
            )
            for word in passage
        )
        for asked in question
    ]


def test_one_text_scores_the_mean_of_the_best_likeness_of_each_word(
    reranker: LocalE5Reranker,
) -> None:
    (score,) = reranker.rerank("red fox ?", ["a fox runs ?"])
    red, fox = _best_likenesses(["red", "fox"], ["a", "fox", "runs"])
    assert score == pytest.approx((red + fox) / 2, abs=0.003)
    assert fox > red + 0.3


def test_a_word_weighs_what_its_best_likeness_is_above_its_mean_one(
    reranker: LocalE5Reranker,
) -> None:
    scores = reranker.rerank("the red fox", ["the fox runs ?", "the sky", "the sun"])
    rows = [
        _best_likenesses(["the", "red", "fox"], passage)
        for passage in (["the", "fox", "runs"], ["the", "sky"], ["the", "sun"])
    ]
    weights = [max(column) - sum(column) / 3 for column in zip(*rows, strict=True)]
    expected = [
        sum(weight * value for weight, value in zip(weights, row, strict=True)) / sum(weights)
        for row in rows
    ]
    assert weights[0] < 0.01  # all have "the"
    assert weights[2] > 0.3  # one has "fox"
    assert_allclose(np.array(scores, float), expected, atol=0.01)


def test_texts_that_are_alike_score_alike(reranker: LocalE5Reranker) -> None:
    first, second = reranker.rerank("red fox", ["fox runs", "fox runs"])
    assert first == second
    assert first == reranker.rerank("red fox", ["fox runs"])[0]


def test_a_question_of_punctuation_only_still_gets_scores(reranker: LocalE5Reranker) -> None:
    first, second = reranker.rerank("?", ["red fox", "?"])
    assert first is not None
    assert second is not None
    assert second > first


def test_no_texts_and_a_past_deadline_read_nothing(
    reranker: LocalE5Reranker, network: FakeNetwork, clock: Clock
) -> None:
    assert reranker.rerank("red", []) == []
    assert reranker.rerank("red", ["fox", "sky"], deadline=clock.now) == [None, None]
    assert network.read == []


def test_the_best_texts_are_done_by_the_deadline_and_the_rest_left_out(
    reranker: LocalE5Reranker, network: FakeNetwork, clock: Clock
) -> None:
    deadline = clock.now + 3.5  # question and two passages; a third would end at 4
    scores = reranker.rerank("red", ["fox", "sky", "red", "sun"], deadline=deadline)
    assert [score is not None for score in scores] == [True, True, False, False]
    assert clock.now == deadline - 0.5
    assert len(network.read) == 3


def test_kept_passages_are_not_read_again_and_score_the_same(
    reranker: LocalE5Reranker, network: FakeNetwork, clock: Clock
) -> None:
    texts = ["fox runs", "blue sky", "fox runs"]
    before = reranker.rerank("red fox", texts)
    assert len(network.read) == 3  # the question and two passages
    assert before[0] == before[2]
    again = reranker.rerank(
        "red fox", texts, deadline=clock.now + 1.5
    )  # time for the question only
    assert again == before
    assert len(network.read) == 4


def test_a_long_text_is_cut_at_what_the_model_takes(
    reranker: LocalE5Reranker, network: FakeNetwork
) -> None:
    reranker.rerank("red", ["fox " * 600])
    assert network.read[-1] == CONTENT_TOKENS


def test_what_is_kept_stays_within_its_bound(clock: Clock) -> None:
    network = FakeNetwork(clock)
    one_word = 384 + 4
    reranker = _reranker(network, recent_bytes=2 * one_word)
    reranker.rerank("red", ["fox", "sky", "sun"])
    reranker.rerank("red", ["sun", "sky"])
    assert len(network.read) == 5  # nothing but the question was read the second time
    reranker.rerank("red", ["fox"])
    assert len(network.read) == 7
    assert reranker._recent.size == 2 * one_word


def _packed(seed: int, tokens: int = 3) -> PackedStates:
    vectors = np.random.default_rng(seed).normal(size=(tokens, 384)).astype(np.float32)
    return PackedStates.pack(unit(vectors))


def test_the_longest_unused_goes_first() -> None:
    one = _packed(0).size
    recent = RecentStates(2 * one)
    for name in (b"a", b"b"):
        recent.put(name, _packed(0))
    recent.get(b"a")
    recent.put(b"c", _packed(1))
    assert [recent.get(name) is not None for name in (b"a", b"b", b"c")] == [True, False, True]
    recent.put(b"c", _packed(1))
    assert recent.size == 2 * one


def test_what_is_larger_than_the_bound_is_not_kept() -> None:
    recent = RecentStates(_packed(0).size - 1)
    recent.put(b"a", _packed(0))
    assert recent.get(b"a") is None
    assert recent.size == 0


def test_threads_keep_the_count_right() -> None:
    one = _packed(0).size
    recent = RecentStates(5 * one)

    def work(number: int) -> None:
        for turn in range(200):
            recent.put(bytes([turn % 7, number % 2]), _packed(0))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recent.size == 5 * one


def test_packing_hardly_changes_a_cosine() -> None:
    rng = np.random.default_rng(1)
    passage = unit(rng.normal(size=(40, 384)).astype(np.float32))
    question = unit(rng.normal(size=(5, 384)).astype(np.float32))
    best = PackedStates.pack(passage).best_matches(question)
    assert_allclose(best, (question @ passage.T).max(axis=1), atol=0.003)


def test_a_zero_state_is_like_nothing() -> None:
    question = unit(np.ones((1, 384), np.float32))
    assert PackedStates.pack(np.zeros((2, 384), np.float32)).best_matches(question) == [0]


@pytest.fixture(scope="session")
def real(embedder: LocalE5Embedder) -> LocalE5Reranker:
    return LocalE5Reranker(embedder)


@slow
@pytest.mark.parametrize(
    ("question", "passages"),
    [
        (
            "How long may a customer return shoes?",
            [
                "Our shop opens at nine and closes at six, also on Saturdays.",
                "Shoes can be sent back within thirty days of purchase for a full refund.",
                "The customer service of the bank answers calls within one minute.",
            ],
        ),
        (
            "鞋子买了以后多久可以退货？",
            [
                "本店每天上午九点开门，下午六点关门，周六照常营业。",
                "鞋类商品自购买之日起三十天内可以退货并全额退款。",
                "银行的客服热线会在一分钟之内接听来电。",
            ],
        ),
        (
            "How long may a customer return shoes?",
            [
                "本店每天上午九点开门，下午六点关门，周六照常营业。",
                "鞋类商品自购买之日起三十天内可以退货并全额退款。",
                "The customer service of the bank answers calls within one minute.",
            ],
        ),
    ],
)
def test_the_answer_scores_highest(
    real: LocalE5Reranker, question: str, passages: list[str]
) -> None:
    scores = np.array(real.rerank(question, passages), float)
    assert scores.argmax() == 1
    assert (np.abs(scores) <= 1).all()


@slow
@pytest.mark.parametrize("text", ["", " ", "…！？", "\ud83d", "👩‍👩‍👧", "word " * 900])
def test_odd_texts_get_scores(real: LocalE5Reranker, text: str) -> None:
    assert np.isfinite(np.array(real.rerank(text, ["a passage", text]), float)).all()


@slow
def test_reranking_leaves_embedding_as_it_is(
    embedder: LocalE5Embedder, real: LocalE5Reranker
) -> None:
    before = embedder.embed_passages(["A cat sleeps on the sofa."])
    real.rerank("cat", ["A cat sleeps on the sofa."])
    assert np.array_equal(before, embedder.embed_passages(["A cat sleeps on the sofa."]))


@slow
def test_the_mean_is_that_of_the_states(embedder: LocalE5Embedder) -> None:
    encoder = embedder.network.encoder()
    ids = [0, *embedder.network.tokenizer.encode("passage: 猫 sleeps"), 2]
    states = encoder.run_states(ids)
    assert states.shape == (len(ids), embedder.dimensions)
    assert_allclose(states.mean(axis=0), encoder.run(ids), atol=1e-5)


@slow
def test_punctuation_is_told_from_words(embedder: LocalE5Embedder) -> None:
    tokenizer = embedder.network.tokenizer
    for text, words in [("。", False), (" ?!", False), ("猫", True), ("7", True), ("+", True)]:
        assert tokenizer.words_among(tokenizer.encode(text)).any() == words
