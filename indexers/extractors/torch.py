"""EntityExtractor over the `gliner` library with torch: CUDA where there is one. Needs the extra `gpu`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexers.errors import ConfigurationError
from indexers.extractors.base import GlinerExtractor
from indexers.extractors.checkpoint import write_checkpoint
from indexers.extractors.scores import Scores
from indexers.extractors.spec import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    GlinerSpec,
    checked,
    read_spec,
    torch_files,
    torch_model_id,
)
from indexers.extractors.tokens import ReadWindow, WordTokenizer, read_tokenizer
from indexers.telemetry import report_nothing
from indexers.torch_device import Device, choose_device


class TorchExtractor(GlinerExtractor[Any]):
    """`model` is a folder or a hub id; HF_HUB_OFFLINE=1 looks for a hub id in the local cache only.

    A folder that holds only an int8 ONNX graph, as the shipped model's, is read with its weights as floats.

    The library makes the batch and runs the model; words, limits and scores are read as by the ONNX adapter, since
    the library cuts what is too long and settles overlaps window by window.
    """

    def __init__(
        self,
        model: str,
        *,
        device: Device = "auto",
        threads: int = 1,
        cpu_affinity: tuple[int, ...] = (),
    ) -> None:
        torch, library = _libraries()
        chosen = choose_device(torch, device, setting="HOPLINE_EXTRACTOR__DEVICE")
        if chosen == "cpu":
            torch.set_num_threads(threads)
        model_id = torch_model_id(model)
        super().__init__(model_id, *_read_files(model), cpu_affinity=cpu_affinity)
        self._model = self._on_model_thread(_load, library, model, chosen)

    @property
    def mixes_documents(self) -> bool:
        """Float activations are not scaled over the batch: neighbours change the last bits at most."""
        return True

    def _inputs(self, windows: Sequence[ReadWindow], labels: Sequence[str]) -> Any:
        texts = [window.texts for window in windows]
        return self._model.collate_batch(self._model.prepare_base_input(texts), list(labels))

    def _run(self, inputs: Any) -> Scores:
        logits: Scores = self._model.run_batch(inputs)[0].float().cpu().numpy().astype(np.float32)
        return logits


def _libraries() -> tuple[Any, Any]:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    report_nothing()
    try:
        import gliner
        import torch
    except ImportError as exc:
        raise ConfigurationError(
            "HOPLINE_EXTRACTOR__BACKEND=torch needs the extra `gpu`: "
            "pip install 'hopline[gpu]' (5 GB), or set it to onnx"
        ) from exc
    return torch, gliner


def _read_files(model: str) -> tuple[GlinerSpec, WordTokenizer]:
    folder = Path(model)
    if not folder.is_dir():
        folder = _hub_folder(model)
    spec = read_spec(folder)
    return spec, read_tokenizer(checked(folder / TOKENIZER_FILE), spec)


def _hub_folder(model: str) -> Path:
    """Where the hub's client keeps the small files of a hub id."""
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(model, TOKENIZER_FILE)
        return Path(hf_hub_download(model, CONFIG_FILE)).parent
    except (OSError, ValueError, RuntimeError) as exc:  # what the hub's client raises when it is away
        raise ConfigurationError(_unloadable(model, exc)) from exc


def _load(library: Any, model: str, device: str) -> Any:
    folder = Path(model)
    if folder.is_dir() and not torch_files(folder):
        with tempfile.TemporaryDirectory() as made:
            write_checkpoint(folder, Path(made))
            return _loaded(library, made, device)
    return _loaded(library, model, device)


def _loaded(library: Any, model: str, device: str) -> Any:
    try:
        loaded = library.GLiNER.from_pretrained(
            model, map_location=device, local_files_only=Path(model).is_dir()
        )
    except Exception as exc:  # what the library, torch and safetensors raise shares no base
        raise ConfigurationError(_unloadable(model, exc)) from exc
    loaded.eval()
    return loaded


def _unloadable(model: str, cause: Exception) -> str:
    return (
        f"the extraction model {model!r} can't be loaded ({cause}): set HOPLINE_EXTRACTOR__MODEL to a folder "
        "that holds a GLiNER checkpoint, or allow the model hub (HF_HUB_OFFLINE=0)"
    )
