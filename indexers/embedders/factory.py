"""Settings → embedder, or only what is known of it without loading weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from indexers.embedders.families import DEFAULT_TORCH_MODEL, family_of, pair_of, torch_model_id
from indexers.embedders.spec import CONFIG_FILE, TOKENIZER_FILE, model_file, read_spec
from indexers.embedders.tokens import FileTokenizer
from indexers.errors import ConfigurationError
from indexers.model_files import shipped_folder
from indexers.ports import Embedder, TokenCounter
from indexers.settings import EmbedderSettings

DEFAULT_MODEL = "e5-small-enko"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """What the hash gate compares: known without loading the model."""

    model_id: str
    pair_id: str
    #: None where only the loaded model can tell.
    dimension: int | None = None
    cosine_floor: float | None = None


def default_model_dir() -> Path:
    """The shipped model. Raises ConfigurationError saying what to do."""
    return shipped_folder(DEFAULT_MODEL, CONFIG_FILE, kind="embedding", setting="HOPLINE_EMBEDDER__MODEL")


def load_embedder(settings: EmbedderSettings) -> Embedder:
    """Blocks for about a second (onnx) or several (torch). Raises ConfigurationError saying what to do."""
    if settings.backend == "torch":
        from indexers.embedders.torch import TorchEmbedder

        return TorchEmbedder(
            settings.model or DEFAULT_TORCH_MODEL,
            device=settings.device,
            precision=settings.precision,
            threads=settings.threads,
            batch_texts=settings.batch_texts or 64,
        )
    from indexers.embedders.onnx import OnnxEmbedder

    if settings.device == "cuda":
        raise ConfigurationError(
            "HOPLINE_EMBEDDER__DEVICE=cuda needs HOPLINE_EMBEDDER__BACKEND=torch (extra `gpu`)"
        )
    return OnnxEmbedder(
        _onnx_folder(settings),
        threads=settings.threads,
        batch_texts=settings.batch_texts or 1,
        cpu_affinity=settings.cpu_affinity,
    )


def load_token_counter(settings: EmbedderSettings) -> TokenCounter:
    """The tokenizer of `load_embedder`'s model, without its weights: for processes that only cut chunks."""
    if settings.backend == "torch":
        from indexers.embedders.torch import load_hub_tokenizer

        return load_hub_tokenizer(settings.model or DEFAULT_TORCH_MODEL)
    folder = _onnx_folder(settings)
    return FileTokenizer(model_file(folder, TOKENIZER_FILE), name=read_spec(folder).name)


def identify_model(settings: EmbedderSettings) -> ModelIdentity:
    """Equal to `model_id` and `pair_id` of `load_embedder`'s result."""
    if settings.backend == "torch":
        model = settings.model or DEFAULT_TORCH_MODEL
        family = family_of(model)
        return ModelIdentity(
            model_id=torch_model_id(model, settings.precision),
            pair_id=pair_of(model),
            dimension=None if family is None else family.dimension,
            cosine_floor=None if family is None else family.cosine_floor,
        )
    spec = read_spec(_onnx_folder(settings))
    return ModelIdentity(
        model_id=spec.name, pair_id=spec.base, dimension=spec.dimension, cosine_floor=spec.cosine_floor
    )


def _onnx_folder(settings: EmbedderSettings) -> Path:
    return default_model_dir() if settings.model is None else Path(settings.model)
