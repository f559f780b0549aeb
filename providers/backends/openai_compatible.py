"""Embeddings of any endpoint that speaks OpenAI's `/embeddings`: OpenAI, vLLM, TEI, Ollama and so on."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import openai

from config.errors import CredentialsError, RateLimitedError, RejectedError, TransientError
from providers.base import Embedder, Tokenizer, Vectors

if TYPE_CHECKING:
    import httpx2

MODEL_PREFIX = "openai/"

_CONNECT_TIMEOUT_S = 5.0
_PASSAGE_TIMEOUT_S = 60.0
_PASSAGE_RETRIES = 3  # with the client's backoff; it obeys Retry-After up to two minutes
_QUERY_TIMEOUT_S = 10.0  # somebody waits
# OpenAI takes this many tokens in one request: https://platform.openai.com/docs/api-reference/embeddings
_REQUEST_TOKENS = 300_000
# Other vocabularies split a little finer than e5's, and spend a token and more on a Chinese, Japanese or
# Korean character where e5's spends 0.66 (measured on Chinese Wikipedia paragraphs).
_TOKEN_MARGIN = 1.25
_EXTRA_PER_CJK_CHARACTER = 0.4
_CJK = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_TRANSIENT_STATUSES = frozenset({408, 409, 425})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """Where the model is and what it takes. `api_key` may be empty for a server that asks for none."""

    base_url: str
    model: str
    dimensions: int
    max_tokens: int
    api_key: str = field(default="", repr=False)
    batch_size: int = 64
    query_prefix: str = ""
    passage_prefix: str = ""


class OpenAICompatibleEmbedder(Embedder):
    """Asks the endpoint; checks what comes back. Token counts are estimates on the safe side.

    Passages are tried again for as long as the endpoint asks. A question is tried twice at once, then
    fails: the search goes on without vectors and says so.
    """

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        tokenizer: Tokenizer,
        http_client: httpx2.Client | None = None,
    ) -> None:
        self.model = MODEL_PREFIX + endpoint.model
        self.dimensions = endpoint.dimensions
        self.max_tokens = endpoint.max_tokens
        most = max(1, _REQUEST_TOKENS // endpoint.max_tokens)
        self.batch_size = min(endpoint.batch_size, most)
        self._endpoint = endpoint
        self._tokenizer = tokenizer
        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or "none",  # the client insists on one
            max_retries=_PASSAGE_RETRIES,
            timeout=openai.Timeout(_PASSAGE_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            http_client=http_client,
        )
        self._query_client = self._client.with_options(
            max_retries=0, timeout=openai.Timeout(_QUERY_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimates by e5's tokenizer, with a margin: rather too many than too few."""
        return [
            math.ceil(_TOKEN_MARGIN * (count + _EXTRA_PER_CJK_CHARACTER * len(_CJK.findall(text))))
            for text, count in zip(texts, self._tokenizer.count_tokens(texts), strict=True)
        ]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found."""
        prefixed = [self._endpoint.passage_prefix + text for text in texts]
        return self._embed(self._client, prefixed)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions; of a very long one, its beginning counts."""
        prefixed = [self._endpoint.query_prefix + self._shortened(text) for text in texts]
        try:
            return self._embed(self._query_client, prefixed)
        except TransientError:
            # Mostly a kept connection that the other side had closed.
            return self._embed(self._query_client, prefixed)

    def _shortened(self, text: str) -> str:
        if len(text) <= self.max_tokens // 2:  # cannot be too long: spares loading the tokenizer
            return text
        (tokens,) = self.count_tokens([text])
        return text if tokens <= self.max_tokens else text[: len(text) * self.max_tokens // tokens]

    def _embed(self, client: openai.OpenAI, texts: Sequence[str]) -> Vectors:
        starts = range(0, len(texts), self.batch_size)
        parts = [self._embed_batch(client, texts[at : at + self.batch_size]) for at in starts]
        return np.concatenate(parts) if parts else np.empty((0, self.dimensions), np.float32)

    def _embed_batch(self, client: openai.OpenAI, texts: Sequence[str]) -> Vectors:
        with _translated_errors(self._endpoint):
            # Not every server knows base64, which the client would ask for.
            answer: object = client.embeddings.create(
                model=self._endpoint.model, input=list(texts), encoding_format="float"
            )
        return _unit(self._numbers(answer, len(texts)))

    def _numbers(self, answer: object, count: int) -> Vectors:
        """The vectors of an answer in the order of the texts. The client checks no types."""
        items = getattr(answer, "data", None)
        if not isinstance(items, list) or len(items) != count:
            raise TransientError(
                "The embedding service returned another number of vectors than asked for."
            )
        by_index = {
            getattr(item, "index", None): getattr(item, "embedding", None) for item in items
        }
        try:
            rows = [np.asarray(by_index[index], dtype=np.float32) for index in range(count)]
        except (KeyError, TypeError, ValueError) as error:
            raise TransientError("The embedding service returned something unreadable.") from error
        for row in rows:
            if row.shape != (self.dimensions,):
                raise RejectedError(
                    f"The embedding service returned vectors of {row.size} numbers where "
                    f"{self.dimensions} are configured (GROUNDWORK_EMBED_DIMENSIONS)."
                )
        return np.stack(rows)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise RejectedError("The embedding service returned a vector without a direction.")
    scaled: Vectors = vectors / lengths
    return scaled


@contextmanager
def _translated_errors(endpoint: EmbeddingEndpoint) -> Iterator[None]:
    """The client's errors as ours. Not chained: theirs may quote the key or the texts."""
    try:
        yield
    except openai.APIStatusError as error:
        reason = str(error.message)
        if endpoint.api_key:
            reason = reason.replace(endpoint.api_key, "***")
        log.warning("embedding service answered %d: %.300s", error.status_code, reason)
        raise _status_error(error) from None
    except openai.APITimeoutError:
        raise TransientError("The embedding service did not answer in time.") from None
    except openai.APIConnectionError:
        raise TransientError("The embedding service cannot be reached.") from None
    except (openai.OpenAIError, ValueError):  # ValueError: a body that is not JSON
        raise TransientError("The embedding service returned something unreadable.") from None


def _status_error(
    error: openai.APIStatusError,
) -> CredentialsError | RateLimitedError | TransientError | RejectedError:
    status = error.status_code
    if status in {401, 403}:
        return CredentialsError("The embedding service refuses the API key.")
    if status == 429 and error.code == "insufficient_quota":
        return CredentialsError("The embedding service's quota is used up.")
    if status == 429:
        message = "The embedding service asks for fewer requests."
        return RateLimitedError(message, _retry_after_s(error.response.headers.get("retry-after")))
    if status in _TRANSIENT_STATUSES or status >= 500:
        return TransientError(f"The embedding service failed (status {status}).")
    if status == 404:
        return RejectedError("The embedding service knows no such address or model.")
    return RejectedError(f"The embedding service rejects the request (status {status}).")


def _retry_after_s(header: str | None) -> float | None:
    """Seconds; a date is rare and not worth a parser."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
