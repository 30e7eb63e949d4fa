"""What a GLiNER checkpoint's folder says of itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from indexers.errors import ConfigurationError
from indexers.model_files import fetched

CONFIG_FILE = "gliner_config.json"
TOKENIZER_FILE = "tokenizer.json"
#: The first that is there is taken; the second folder is how the hub lays conversions out.
ONNX_FILES = tuple(
    f"{folder}{name}.onnx" for folder in ("", "onnx/") for name in ("model_int8", "model_quantized", "model")
)
#: Hub configurations leave it out; it is what every BERT-like encoder has.
DEFAULT_MAX_TOKENS = 512
#: An operator that only graphs with 8-bit activations have: their scores depend on the whole batch.
_DYNAMIC_INT8 = b"DynamicQuantizeLinear"


class GlinerSpec(BaseModel):
    """`gliner_config.json`; keys that inference doesn't need are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    #: Longest span, words.
    max_width: int = Field(gt=0)
    #: Longest text, words.
    max_len: int = Field(gt=0)
    ent_token: str = Field(min_length=1)
    sep_token: str = Field(min_length=1)
    span_mode: str
    subtoken_pooling: str = "first"
    words_splitter_type: str = "whitespace"
    #: Set in models that read labels with an encoder of their own.
    labels_encoder: str | None = None
    relations_layer: str | None = None
    encoder_config: dict[str, Any] | None = None

    @property
    def max_tokens(self) -> int:
        """Of prompt and text together, special tokens included."""
        positions = (self.encoder_config or {}).get("max_position_embeddings")
        return positions if isinstance(positions, int) and positions > 0 else DEFAULT_MAX_TOKENS


def read_spec(folder: Path) -> GlinerSpec:
    """Raises ConfigurationError saying which file is missing or wrong and what to do."""
    path = folder / CONFIG_FILE
    try:
        spec = GlinerSpec.model_validate(json.loads(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise ConfigurationError(_missing(path)) from exc
    except (ValidationError, ValueError) as exc:
        raise ConfigurationError(f"{path} does not describe a GLiNER model: {exc}") from exc
    for value, wanted, what in (
        (spec.span_mode == "token_level", False, "span_mode token_level"),
        (spec.labels_encoder is not None, False, "labels_encoder (bi-encoder)"),
        (spec.relations_layer is not None, False, "relations_layer"),
        (spec.subtoken_pooling, "first", f"subtoken_pooling {spec.subtoken_pooling}"),
        (spec.words_splitter_type, "whitespace", f"words_splitter_type {spec.words_splitter_type}"),
    ):
        if value != wanted:
            raise ConfigurationError(
                f"{path}: {what} is not supported; take a uni-encoder span model (markerV0, splitter whitespace)"
            )
    return spec


def onnx_file(folder: Path) -> Path:
    """The graph to load; a Git LFS pointer counts as missing."""
    for name in ONNX_FILES:
        if (folder / name).is_file():
            return checked(folder / name)
    raise ConfigurationError(_missing(folder / ONNX_FILES[0]))


def checked(path: Path) -> Path:
    """The path, if a file with content of its own is there."""
    if not path.is_file():
        raise ConfigurationError(_missing(path))
    return fetched(path)


def content_hash(*paths: Path) -> str:
    """Twelve hex digits: a model trained anew into the same folder is another model."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def onnx_model_id(folder: Path) -> str:
    """`gliner-mini-int8-0a1b2c3d4e5f`: folder, precision of the file, hash of graph and tokenizer."""
    path = onnx_file(folder)
    variant = path.stem.removeprefix("model").strip("_") or "fp32"
    return f"{folder.resolve().name}-{variant}-{content_hash(path, checked(folder / TOKENIZER_FILE))}"


def torch_model_id(model: str) -> str:
    """`ours-fp32-0a1b2c3d4e5f` of a folder; of a hub id its name alone, which stands for one content."""
    folder = Path(model)
    if not folder.is_dir():
        return f"{folder.name}-fp32"
    weights = torch_files(folder) or [onnx_file(folder)]
    return f"{folder.resolve().name}-fp32-{content_hash(*weights)}"


def torch_files(folder: Path) -> list[Path]:
    """Weights that torch reads; none where there is only an ONNX graph."""
    return [checked(path) for path in sorted(folder.iterdir()) if path.suffix in (".safetensors", ".bin")]


def scales_over_batch(path: Path) -> bool:
    """True where 8-bit activations are scaled over all that a call holds."""
    return _DYNAMIC_INT8 in path.read_bytes()


def _missing(path: Path) -> str:
    return (
        f"the extraction model lacks {path}: set HOPLINE_EXTRACTOR__MODEL to a folder that holds {CONFIG_FILE}, "
        f"{TOKENIZER_FILE} and {ONNX_FILES[0]} (or another of {', '.join(ONNX_FILES[1:])}), "
        "or install hopline again (the default model is part of it)"
    )
