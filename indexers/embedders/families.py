"""Models that are known by name: their prefixes, their floor and the vector space that they share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

Precision = Literal["fp32", "fp16", "bf16"]

#: The GPU pair of the shipped ONNX model: one vector space (MODEL_CARD.md), so one index may hold both.
DEFAULT_TORCH_MODEL = "intfloat/multilingual-e5-small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    dimension: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    cosine_floor: float = 0.0


_FAMILIES = {
    f"{name}-{size}{version}": Family(
        dimension=dimension, query_prefix="query: ", passage_prefix="passage: ", cosine_floor=0.75
    )
    for name, version in (("multilingual-e5", ""), ("e5", "-v2"))
    for size, dimension in (("small", 384), ("base", 768), ("large", 1024))
}


def family_of(model: str) -> Family | None:
    """Of a hub id or a folder that ends in the model's name; None for a model that isn't known."""
    return _FAMILIES.get(short_name(model))


def short_name(model: str) -> str:
    return PurePath(model).name


def pair_of(model: str) -> str:
    """A copy of a known model in a folder is the model itself; any other folder is a space of its own."""
    return f"intfloat/{short_name(model)}" if family_of(model) else model


def torch_model_id(model: str, precision: Precision) -> str:
    return f"{short_name(model)}-{precision}"
