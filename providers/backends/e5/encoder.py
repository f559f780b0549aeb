"""Runs the encoder: token ids in, the states of the tokens or their mean out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from providers.backends.e5.build import ENCODER_FILE, ModelCache
from providers.backends.e5.weights import Weights, dequantise, open_weights
from providers.base import Vectors


class Encoder:
    """The embedding tables and the session. Running it is safe from several threads.

    It takes one text at a time. Activations are rounded to 8 bits by the range they have in one call, so
    in a batch a vector would depend on its neighbours (cosine down to 0.98 after the correction): the same
    text would not get the same vector twice. Batching gains no speed either: a passage of some hundred
    tokens keeps the cores busy, and nothing is spent on padding.
    """

    def __init__(self, weights: Weights, session: Any) -> None:
        shape = weights.shape
        self._words = weights.blocks("emb.word", shape.vocabulary)
        positions = weights.floats("emb.pos").reshape(-1, shape.hidden)
        self._positions = positions + weights.floats("emb.type")[: shape.hidden]
        self._session = session

    @classmethod
    def load(cls, cache: ModelCache, threads: int) -> Encoder:
        """Open the cache (half a second). `threads` are the cores one call may use."""
        onnxruntime = import_module("onnxruntime")  # slow to import, so not before it is needed
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Idle threads sleep: the cores are shared with the database and other workers.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(
            cache.read(ENCODER_FILE), options, providers=["CPUExecutionProvider"]
        )
        return cls(open_weights(), session)

    def run(self, ids: Sequence[int]) -> Vectors:
        """The mean state `(hidden,)`, not normalised, of a text with <s> and </s>."""
        return self._output("mean", ids)

    def run_states(self, ids: Sequence[int]) -> Vectors:
        """The state of each token `(len(ids), hidden)`, not normalised."""
        return self._output("states", ids)

    def _output(self, name: str, ids: Sequence[int]) -> Vectors:
        embedded = dequantise(self._words[np.asarray(ids)]) + self._positions[: len(ids)]
        value: Vectors = self._session.run([name], {"embedded": embedded[np.newaxis]})[0][0]
        return value
