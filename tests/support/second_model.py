"""A second embedding model: the default one's graph, cut down to fewer dimensions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from annals_storage.embedding.minilm_graph import OUTPUT

SECOND_MODEL = "test/half-minilm"
SECOND_DIMENSIONS = 192


def write_second_model(first: Path, target: Path) -> Path:
    """Write it beside nothing else; vectors of texts differ from the first one's in all ways."""
    shutil.copytree(first, target)
    graph = onnx.load(first / "model.onnx")
    [output] = graph.graph.output
    for node in graph.graph.node:
        node.output[:] = ["whole" if name == OUTPUT else name for name in node.output]
    bounds = {"starts": [0], "ends": [SECOND_DIMENSIONS], "axes": [2]}
    for name, values in bounds.items():
        graph.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    graph.graph.node.append(helper.make_node("Slice", ["whole", *bounds], [OUTPUT]))
    output.type.tensor_type.shape.dim[2].dim_value = SECOND_DIMENSIONS
    onnx.save(graph, target / "model.onnx")
    config = json.loads((target / "config.json").read_bytes())
    (target / "config.json").write_text(json.dumps(config | {"hidden_size": SECOND_DIMENSIONS}))
    return target
