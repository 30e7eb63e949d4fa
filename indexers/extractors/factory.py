"""Settings → extractor, or only its id without loading weights."""

from __future__ import annotations

from pathlib import Path

from indexers.errors import ConfigurationError
from indexers.extractors.spec import CONFIG_FILE, onnx_model_id, read_spec, torch_model_id
from indexers.model_files import shipped_folder
from indexers.ports import EntityExtractor
from indexers.settings import ExtractorSettings

DEFAULT_MODEL = "gliner-mini"


def default_model_dir() -> Path:
    """The shipped model. Raises ConfigurationError saying what to do."""
    return shipped_folder(DEFAULT_MODEL, CONFIG_FILE, kind="extraction", setting="HOPLINE_EXTRACTOR__MODEL")


def load_extractor(settings: ExtractorSettings) -> EntityExtractor:
    """Blocks for a second (onnx) or several (torch). Raises ConfigurationError saying what to do."""
    if settings.backend == "torch":
        from indexers.extractors.torch import TorchExtractor

        return TorchExtractor(
            _torch_model(settings),
            device=settings.device,
            threads=settings.threads,
            cpu_affinity=settings.cpu_affinity,
        )
    from indexers.extractors.onnx import OnnxExtractor

    if settings.device == "cuda":
        raise ConfigurationError(
            "HOPLINE_EXTRACTOR__DEVICE=cuda needs HOPLINE_EXTRACTOR__BACKEND=torch (extra `gpu`)"
        )
    return OnnxExtractor(_onnx_folder(settings), threads=settings.threads, cpu_affinity=settings.cpu_affinity)


def identify_extractor(settings: ExtractorSettings) -> str:
    """Equal to `model_id` of `load_extractor`'s result; reads the weights' file once, for its hash."""
    if settings.backend == "torch":
        return torch_model_id(_torch_model(settings))
    folder = _onnx_folder(settings)
    read_spec(folder)
    return onnx_model_id(folder)


def _onnx_folder(settings: ExtractorSettings) -> Path:
    return default_model_dir() if settings.model is None else Path(settings.model)


def _torch_model(settings: ExtractorSettings) -> str:
    return str(default_model_dir()) if settings.model is None else settings.model
