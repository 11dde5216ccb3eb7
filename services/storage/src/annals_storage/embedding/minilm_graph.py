"""The graph of a BERT encoder in ONNX, from its weights.

Only standard operators: onnxruntime fuses them on load, and a graph of its own fused
operators (`com.microsoft.Attention`, `SkipLayerNormalization`) was not faster on CPU
(64 texts of 32 tokens, two threads: 267 ms against 271 ms).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 10
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "last_hidden_state"

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class BertShape:
    """Sizes of the encoder, as its config.json names them."""

    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    layer_norm_eps: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> BertShape:
        """Read the sizes. Raises `ValueError` for an activation or positions not built here."""
        built = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
        if any(config[key] != value for key, value in built.items()):
            raise ValueError(f"config.json must have {built}")
        return cls(**{key: config[key] for key in cls.__slots__})

    @property
    def head_size(self) -> int:
        """Dimensions of one attention head."""
        return self.hidden_size // self.num_attention_heads


def build_bert(weights: Weights, shape: BertShape) -> ModelProto:
    """Return the encoder: int64 (batch, sequence) × 3 → float32 (batch, sequence, hidden)."""
    builder = _Builder(weights, shape)
    hidden = builder.embeddings()
    mask = builder.mask_bias()
    for layer in range(shape.num_hidden_layers):
        hidden = builder.layer(layer, hidden, mask)
    builder.node("Identity", [hidden], output=OUTPUT)
    return builder.model()


class _Builder:
    """Collects nodes and initializers. Each method returns the name of what it computed."""

    def __init__(self, weights: Weights, shape: BertShape) -> None:
        self._weights = weights
        self._shape = shape
        self._nodes: list[Any] = []
        self._initializers: dict[str, TensorProto] = {}

    def node(self, op: str, inputs: list[str], *, output: str = "", **attributes: Any) -> str:
        name = output or f"{op}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Any, dtype: type[np.generic]) -> str:
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        self._initializers.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self._weights[name], np.float32)

    def linear(self, prefix: str, value: str) -> str:
        # Stored as (out, in); MatMul wants (in, out).
        kernel = self.constant(f"{prefix}.weight", self._weights[f"{prefix}.weight"].T, np.float32)
        product = self.node("MatMul", [value, kernel])
        return self.node("Add", [product, self.weight(f"{prefix}.bias")])

    def layer_norm(self, prefix: str, value: str) -> str:
        scale, bias = self.weight(f"{prefix}.weight"), self.weight(f"{prefix}.bias")
        epsilon = self._shape.layer_norm_eps
        return self.node("LayerNormalization", [value, scale, bias], axis=-1, epsilon=epsilon)

    def embeddings(self) -> str:
        words = self.node("Gather", [self.weight("embeddings.word_embeddings.weight"), INPUTS[0]])
        types = self.weight("embeddings.token_type_embeddings.weight")
        typed = self.node("Add", [words, self.node("Gather", [types, INPUTS[2]])])
        positioned = self.node("Add", [typed, self._positions()])
        return self.layer_norm("embeddings.LayerNorm", positioned)

    def _positions(self) -> str:
        length = self.node("Shape", [INPUTS[0]], start=1, end=2)
        table = self.weight("embeddings.position_embeddings.weight")
        return self.node("Slice", [table, self.constant("origin", [0], np.int64), length])

    def mask_bias(self) -> str:
        """Return 0 for tokens and a very low number for padding: (batch, 1, 1, sequence)."""
        kept = self.node("Cast", [INPUTS[1]], to=TensorProto.FLOAT)
        padded = self.node("Sub", [self.constant("one", 1, np.float32), kept])
        lowest = self.constant("lowest", np.finfo(np.float32).min, np.float32)
        bias = self.node("Mul", [padded, lowest])
        return self.node("Unsqueeze", [bias, self.constant("mask_axes", [1, 2], np.int64)])

    def layer(self, index: int, hidden: str, mask: str) -> str:
        prefix = f"encoder.layer.{index}"
        attended = self.linear(
            f"{prefix}.attention.output.dense", self._attention(prefix, hidden, mask)
        )
        middle = self.layer_norm(
            f"{prefix}.attention.output.LayerNorm", self.node("Add", [attended, hidden])
        )
        inner = self.node("Gelu", [self.linear(f"{prefix}.intermediate.dense", middle)])
        outer = self.linear(f"{prefix}.output.dense", inner)
        return self.layer_norm(f"{prefix}.output.LayerNorm", self.node("Add", [outer, middle]))

    def _attention(self, prefix: str, hidden: str, mask: str) -> str:
        query = self._heads(f"{prefix}.attention.self.query", hidden, [0, 2, 1, 3])
        key = self._heads(f"{prefix}.attention.self.key", hidden, [0, 2, 3, 1])
        value = self._heads(f"{prefix}.attention.self.value", hidden, [0, 2, 1, 3])
        scale = self.constant("scale", 1 / math.sqrt(self._shape.head_size), np.float32)
        scores = self.node("Mul", [self.node("MatMul", [query, key]), scale])
        weights = self.node("Softmax", [self.node("Add", [scores, mask])], axis=-1)
        context = self.node("MatMul", [weights, value])
        joined = self.node("Transpose", [context], perm=[0, 2, 1, 3])
        merged = self.constant("merged_shape", [0, 0, self._shape.hidden_size], np.int64)
        return self.node("Reshape", [joined, merged])

    def _heads(self, prefix: str, hidden: str, permutation: list[int]) -> str:
        split = [0, 0, self._shape.num_attention_heads, self._shape.head_size]
        shape = self.constant("split_shape", split, np.int64)
        heads = self.node("Reshape", [self.linear(prefix, hidden), shape])
        return self.node("Transpose", [heads], perm=permutation)

    def model(self) -> ModelProto:
        axes = ["batch", "sequence"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in INPUTS]
        output = helper.make_tensor_value_info(
            OUTPUT, TensorProto.FLOAT, [*axes, self._shape.hidden_size]
        )
        graph = helper.make_graph(
            self._nodes, "bert", inputs, [output], list(self._initializers.values())
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
