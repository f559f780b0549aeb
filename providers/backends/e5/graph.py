"""The encoder as an ONNX graph with 8-bit weights. Needed only to build the cache (`onnx` is heavy).

The graph begins after the embedding tables, which stay 4-bit in the weights file (they are three quarters
of it) and are looked up by `Encoder`; it ends with the states of the tokens and their mean. One text at a
time: see there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from providers.backends.e5.weights import Weights

_OPSET = 20  # the first with Gelu
_IR_VERSION = 9


class EncoderGraph:
    """Builds the twelve layers; each method adds nodes and returns the name of its output."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._shape = weights.shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def build(self) -> onnx.ModelProto:
        """Input `embedded` (1, tokens, hidden); outputs `mean` (1, hidden), `states` as the input."""
        hidden = self._shape.hidden
        x = self._normalise("embedded", "emb.ln")
        for layer in range(self._shape.layers):
            x = self._layer(x, f"l{layer}")
        self._op("ReduceMean", [x, self._integers(1)], "mean", keepdims=0)
        self._op("Identity", [x], "states")
        graph = helper.make_graph(
            self._nodes,
            "e5",
            [_value("embedded", [1, "tokens", hidden])],
            [_value("mean", [1, hidden]), _value("states", [1, "tokens", hidden])],
            list(self._constants.values()),
        )
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
        # Its pre-processing infers shapes and folds nodes, of which this graph needs neither.
        helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
        return model

    def _op(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _integers(self, *values: int) -> str:
        return self._constant("i_" + "_".join(map(str, values)), np.array(values, np.int64))

    def _tensor(self, name: str) -> str:
        return self._constant(name, self._weights.floats(name))

    def _normalise(self, x: str, name: str) -> str:
        inputs = [x, self._tensor(f"{name}.w"), self._tensor(f"{name}.b")]
        epsilon = self._shape.epsilon
        return self._op("LayerNormalization", inputs, f"{name}.out", axis=-1, epsilon=epsilon)

    def _linear(self, x: str, name: str, outputs: int) -> str:
        matrix = self._constant(f"{name}.w", self._weights.matrix(f"{name}.w", outputs).T)
        product = self._op("MatMul", [x, matrix], f"{name}.product")
        return self._op("Add", [product, self._tensor(f"{name}.b")], f"{name}.out")

    def _layer(self, x: str, name: str) -> str:
        attended = self._op("Add", [x, self._attention(x, name)], f"{name}.attended")
        x = self._normalise(attended, f"{name}.aln")
        inner = self._linear(x, f"{name}.fi", self._shape.feed_forward)
        active = self._op("Gelu", [inner], f"{name}.active")
        outer = self._linear(active, f"{name}.fo", self._shape.hidden)
        return self._normalise(self._op("Add", [x, outer], f"{name}.sum"), f"{name}.oln")

    def _heads(self, x: str, name: str, order: list[int]) -> str:
        """Project, split into heads and put the axes (text, token, head, number) in `order`."""
        size = self._shape.hidden // self._shape.heads
        projected = self._linear(x, name, self._shape.hidden)
        split = self._integers(0, 0, self._shape.heads, size)
        heads = self._op("Reshape", [projected, split], f"{name}.heads")
        return self._op("Transpose", [heads], f"{name}.turned", perm=order)

    def _attention(self, x: str, name: str) -> str:
        queries = self._heads(x, f"{name}.q", [0, 2, 1, 3])
        keys = self._heads(x, f"{name}.k", [0, 2, 3, 1])
        values = self._heads(x, f"{name}.v", [0, 2, 1, 3])
        size = self._shape.hidden // self._shape.heads
        scale = self._constant("scale", np.array(size**-0.5, np.float32))
        products = self._op("MatMul", [queries, keys], f"{name}.products")
        scaled = self._op("Mul", [products, scale], f"{name}.scaled")
        shares = self._op("Softmax", [scaled], f"{name}.shares", axis=-1)
        context = self._op("MatMul", [shares, values], f"{name}.context")
        turned = self._op("Transpose", [context], f"{name}.context_turned", perm=[0, 2, 1, 3])
        joined_shape = self._integers(0, 0, self._shape.hidden)
        joined = self._op("Reshape", [turned, joined_shape], f"{name}.joined")
        return self._linear(joined, f"{name}.ao", self._shape.hidden)


def _value(name: str, shape: list[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def quantised_encoder(weights: Weights, *, reduce_range: bool) -> bytes:
    """The encoder with 8-bit weights (7-bit with `reduce_range`) per output channel, as an ONNX file."""
    model = EncoderGraph(weights).build()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "encoder.onnx"
        quantize_dynamic(
            model,
            output,
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
        )
        return output.read_bytes()
