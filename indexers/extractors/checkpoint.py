"""A torch checkpoint from an int8 graph: the shipped model for a GPU, and to train on. Needs the extra `gpu`.

Each weight is its 8-bit value times its scale; a checkpoint differs from the one that the graph was made of by the
rounding alone. Names of nodes say which parameter a product's weight is: `/core/a/b/b.0/MatMul_quant` → `a.b.0.weight`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexers.errors import ConfigurationError
from indexers.extractors.spec import onnx_file

CHECKPOINT_FILE = "model.safetensors"
_ROOT = "core."


def write_checkpoint(folder: Path, target: Path) -> None:
    """`folder`: a GLiNER model as int8 ONNX, exported under the root `core`; `target`: an empty folder."""
    import onnx
    from safetensors.numpy import save_file

    path = onnx_file(folder)
    graph = onnx.load(str(path)).graph
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = dict(_named(values)) | dict(_products(graph, values))
    if not any(name.startswith("token_rep_layer.") for name in weights):
        raise ConfigurationError(
            f"{path} has no named weights to make a checkpoint of: give a torch checkpoint"
        )
    save_file(
        {name: np.ascontiguousarray(value) for name, value in weights.items()}, target / CHECKPOINT_FILE
    )
    for file in folder.glob("*.json"):
        shutil.copy(file, target)


def _named(values: dict[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Biases, norms and embeddings, which keep their names."""
    for name, value in values.items():
        plain = name.removesuffix("_quantized")
        if not name.startswith(_ROOT) or name.endswith(("_scale", "_zero_point")):
            continue
        yield plain.removeprefix(_ROOT), value if plain == name else _scaled(values, plain)


def _products(graph: Any, values: dict[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            parts = node.name.removeprefix("/core/").split("/")[:-1]
            below = [*parts[1:], ""]
            kept = [p for p, after in zip(parts, below, strict=True) if not after.startswith(f"{p}.")]
            # torch keeps a linear layer's weight as [out, in].
            yield f"{'.'.join(kept)}.weight", _scaled(values, node.input[1].removesuffix("_quantized")).T


def _scaled(values: dict[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    """Scale and zero point: one for all, or one a column."""
    quantised, zero = (values[f"{name}_{part}"].astype(np.float32) for part in ("quantized", "zero_point"))
    scaled: NDArray[np.float32] = (quantised - zero) * values[f"{name}_scale"]
    return scaled
