"""What a model folder says of itself, and which models share one vector space."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from indexers.errors import ConfigurationError
from indexers.model_files import fetched

CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"


class ModelSpec(BaseModel):
    """`config.json` of an ONNX model folder; keys that are only for people are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(min_length=1)
    base: str = Field(min_length=1)
    dimension: int = Field(gt=0)
    max_tokens: int = Field(gt=0)
    pad_id: int = Field(ge=0)
    query_prefix: str = ""
    passage_prefix: str = ""
    cosine_floor: float = Field(0.0, ge=-1.0, lt=1.0)
    model_file: str = "model_int8.onnx"


def read_spec(folder: Path) -> ModelSpec:
    """Raises ConfigurationError saying which file is missing or wrong and what to do."""
    path = folder / CONFIG_FILE
    try:
        return ModelSpec.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as exc:
        raise ConfigurationError(_missing(path)) from exc
    except (ValidationError, ValueError) as exc:
        raise ConfigurationError(f"{path} does not describe an embedding model: {exc}") from exc


def model_file(folder: Path, name: str) -> Path:
    """The file with this name in the folder; a Git LFS pointer counts as missing."""
    path = folder / name
    if not path.is_file():
        raise ConfigurationError(_missing(path))
    return fetched(path)


def _missing(path: Path) -> str:
    return (
        f"the embedding model lacks {path}: set HOPLINE_EMBEDDER__MODEL to a folder that holds "
        f"{CONFIG_FILE}, {TOKENIZER_FILE} and the .onnx file, "
        "or install hopline again (the default model is part of it)"
    )
