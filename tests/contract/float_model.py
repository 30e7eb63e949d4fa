"""The shipped model without its int8 arithmetic: same graph, same weights, every product in fp32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write_float_model(source: Path, target: Path) -> None:
    """Each `quantise → integer product → scale` becomes one product of the input and the scaled weights."""
    import onnx

    model = onnx.load(str(source))
    graph = model.graph
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made_by = {output: node for node in graph.node for output in node.output}
    read_by = {name: node for node in graph.node for name in node.input}
    products = [node for node in graph.node if node.op_type == "MatMulInteger"]
    for node in products:
        quantised, weight, _, zero = node.input
        [cast] = node.output
        scaled = read_by[read_by[cast].output[0]]
        scales = made_by[next(name for name in scaled.input if made_by[name].op_type == "Mul")]
        scale = next(weights[name] for name in scales.input if name in weights)
        name = f"{weight}_float"
        values = (weights[weight].astype(np.float32) - weights[zero].astype(np.float32)) * scale
        graph.initializer.append(onnx.numpy_helper.from_array(values.astype(np.float32), name))
        _replace(
            graph, scaled, onnx.helper.make_node("MatMul", [made_by[quantised].input[0], name], scaled.output)
        )
    _prune(graph)
    onnx.save(model, str(target))


def _replace(graph: Any, old: Any, new: Any) -> None:
    at = next(i for i, node in enumerate(graph.node) if node.output == old.output)
    graph.node.remove(old)
    graph.node.insert(at, new)


def _prune(graph: Any) -> None:
    """Nodes and weights whose results nobody reads any more."""
    while True:
        read = {name for node in graph.node for name in node.input} | {out.name for out in graph.output}
        idle = [node for node in graph.node if not read.intersection(node.output)]
        if not idle:
            break
        for node in idle:
            graph.node.remove(node)
    for tensor in [t for t in graph.initializer if t.name not in read]:
        graph.initializer.remove(tensor)
