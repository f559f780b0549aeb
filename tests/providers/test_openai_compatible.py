"""The OpenAI-compatible embedder against a scripted endpoint at the wire."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Sequence

import httpx2
import numpy as np
import pytest

from config.errors import (
    CredentialsError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)
from providers.backends.openai_compatible import EmbeddingEndpoint, OpenAICompatibleEmbedder
from providers.base import Tokenizer

KEY = "sk-very-secret"
Answer = httpx2.Response | Exception
Reply = Callable[[httpx2.Request], httpx2.Response]


class WordTokenizer(Tokenizer):
    max_tokens = 100

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


class Endpoint:
    """Plays its script, then answers properly: text "7" gets the vector (7, 1)."""

    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if not self.script:
            return embeddings([[float(text[-1]), 1.0] for text in self.inputs[-1]])
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def inputs(self) -> list[list[str]]:
        return [json.loads(request.content)["input"] for request in self.requests]


def embeddings(vectors: list[list[float]], *, backwards: bool = False) -> httpx2.Response:
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    ordered = data[::-1] if backwards else data
    return httpx2.Response(
        200, json={"object": "list", "data": ordered, "model": "m", "usage": usage}
    )


def failure(status: int, *, code: str = "x", **headers: str) -> httpx2.Response:
    error = {"message": f"no, {KEY} and 'the text'", "type": "x", "code": code}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={"error": error}, headers=names)


def embedder_of(endpoint: Reply, **options: object) -> OpenAICompatibleEmbedder:
    defaults: dict[str, object] = {
        "base_url": "https://embeddings.test/v1",
        "model": "m",
        "dimensions": 2,
        "max_tokens": 64,
        "api_key": KEY,
    }
    return OpenAICompatibleEmbedder(
        EmbeddingEndpoint(**{**defaults, **options}),  # type: ignore[arg-type] # test data
        WordTokenizer(),
        httpx2.Client(transport=httpx2.MockTransport(endpoint)),
    )


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds the client would have slept."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def test_vectors_are_scaled_to_length_one() -> None:
    endpoint = Endpoint()
    vectors = embedder_of(endpoint).embed_passages(["3"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[3 / 10**0.5, 1 / 10**0.5]], rtol=1e-6)
    (request,) = endpoint.requests
    assert str(request.url) == "https://embeddings.test/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    body = {"input": ["3"], "model": "m", "encoding_format": "float"}
    assert json.loads(request.content) == body


def test_batches_keep_the_order() -> None:
    endpoint = Endpoint()
    vectors = embedder_of(endpoint, batch_size=2).embed_passages(["1", "2", "3", "4", "5"])
    assert endpoint.inputs == [["1", "2"], ["3", "4"], ["5"]]
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [1, 2, 3, 4, 5], rtol=1e-5)


def test_vectors_are_sorted_by_their_index() -> None:
    endpoint = Endpoint(embeddings([[1.0, 0.0], [0.0, 1.0]], backwards=True))
    assert embedder_of(endpoint).embed_passages(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_no_texts_ask_nothing() -> None:
    endpoint = Endpoint()
    assert embedder_of(endpoint).embed_passages([]).shape == (0, 2)
    assert not endpoint.requests


def test_prefixes_are_put_before_the_texts() -> None:
    endpoint = Endpoint()
    embedder = embedder_of(endpoint, query_prefix="query: ", passage_prefix="passage: ")
    embedder.embed_queries(["1"])
    embedder.embed_passages(["2"])
    assert endpoint.inputs == [["query: 1"], ["passage: 2"]]


def test_a_server_without_keys_gets_a_placeholder() -> None:
    endpoint = Endpoint()
    embedder_of(endpoint, api_key="").embed_passages(["1"])
    assert endpoint.requests[0].headers["authorization"] == "Bearer none"


def test_retry_after_is_obeyed(pauses: list[float]) -> None:
    endpoint = Endpoint(failure(429, retry_after="7"))
    assert embedder_of(endpoint).embed_passages(["1"]).shape == (1, 2)
    assert pauses == [7.0]


def test_a_passing_fault_is_tried_again(pauses: list[float]) -> None:
    endpoint = Endpoint(failure(500), failure(503))
    assert embedder_of(endpoint).embed_passages(["1"]).shape == (1, 2)
    assert len(pauses) == 2


def test_a_question_does_not_wait_for_a_rate_limit(pauses: list[float]) -> None:
    endpoint = Endpoint(failure(429, retry_after="7"))
    with pytest.raises(RateLimitedError) as caught:
        embedder_of(endpoint).embed_queries(["1"])
    assert caught.value.retry_after_s == 7
    assert not pauses


def test_a_question_is_asked_again_once_and_at_once(pauses: list[float]) -> None:
    endpoint = Endpoint(httpx2.RemoteProtocolError("closed"))
    assert embedder_of(endpoint).embed_queries(["1"]).shape == (1, 2)
    endpoint = Endpoint(failure(500), failure(500))
    with pytest.raises(TransientError):
        embedder_of(endpoint).embed_queries(["1"])
    assert not pauses


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (failure(401), CredentialsError, "refuses the API key"),
        (failure(403), CredentialsError, "refuses the API key"),
        (failure(429, code="insufficient_quota"), CredentialsError, "quota is used up"),
        (failure(429, retry_after="soon"), RateLimitedError, "fewer requests"),
        (failure(408), TransientError, "status 408"),
        (failure(500), TransientError, "status 500"),
        (failure(404), RejectedError, "no such address or model"),
        (failure(400), RejectedError, "status 400"),
        (failure(413), RejectedError, "status 413"),
        (httpx2.ReadTimeout("slow"), TransientError, "in time"),
        (httpx2.ConnectError("refused"), TransientError, "cannot be reached"),
        (httpx2.Response(200, text="<html>"), TransientError, "another number"),
        (
            httpx2.Response(200, content=b"{", headers={"content-type": "application/json"}),
            TransientError,
            "unreadable",
        ),
        (httpx2.Response(200, json={"data": None}), TransientError, "another number"),
        (httpx2.Response(200, json={"data": [3]}), TransientError, "unreadable"),
        (
            httpx2.Response(200, json={"data": [{"index": 0, "embedding": "abc"}]}),
            TransientError,
            "unreadable",
        ),
        (
            httpx2.Response(200, json={"data": [{"index": 1, "embedding": [1, 2]}]}),
            TransientError,
            "unreadable",
        ),
        (embeddings([[1, 2], [3, 4]]), TransientError, "another number"),
        (embeddings([[1, 2, 3]]), RejectedError, "vectors of 3 numbers where 2"),
        (embeddings([[0, 0]]), RejectedError, "without a direction"),
    ],
)
def test_every_fault_says_what_to_do_and_keeps_the_key(
    answer: Answer,
    error: type[RemoteError],
    message: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def always(_request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, content=answer.content, headers=answer.headers)

    with caplog.at_level(logging.DEBUG), pytest.raises(error, match=message) as caught:
        embedder_of(always).embed_passages(["the text"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in caplog.text
    assert KEY not in repr(EmbeddingEndpoint("u", "m", 2, 64, KEY))


def test_retries_end() -> None:
    endpoint = Endpoint(*[failure(500) for _ in range(10)])
    with pytest.raises(TransientError):
        embedder_of(endpoint).embed_passages(["1"])
    assert len(endpoint.requests) == 4


def test_token_counts_lie_on_the_safe_side() -> None:
    embedder = embedder_of(Endpoint())
    assert embedder.count_tokens(["one two three four", "水 的 沸 点"]) == [5, 7]


def test_a_long_question_is_shortened() -> None:
    endpoint = Endpoint()
    embedder_of(endpoint).embed_queries(["1 " * 200 + "1", "2 " * 10 + "2"])
    long, short = endpoint.inputs[0]
    assert 40 < len(long.split()) <= 64
    assert short == "2 " * 10 + "2"


def test_a_request_stays_within_what_openai_takes() -> None:
    assert embedder_of(Endpoint(), max_tokens=8191).batch_size == 36
    assert embedder_of(Endpoint(), max_tokens=512).batch_size == 64
