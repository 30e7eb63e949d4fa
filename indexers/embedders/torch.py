"""Embedder over sentence-transformers: CUDA where there is one. Needs the extra `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexers.embedders.checks import check_passages, check_query, unit_rows
from indexers.embedders.families import Family, Precision, family_of, pair_of, short_name, torch_model_id
from indexers.embedders.spec import TOKENIZER_FILE
from indexers.embedders.tokens import FileTokenizer, token_budget
from indexers.errors import ConfigurationError
from indexers.ports import Vectors
from indexers.telemetry import report_nothing
from indexers.torch_device import Device, choose_device


class TorchEmbedder:
    """`model` is a folder or a hub id; HF_HUB_OFFLINE=1 looks for a hub id in the local cache only."""

    def __init__(
        self,
        model: str,
        *,
        device: Device = "auto",
        precision: Precision = "fp32",
        threads: int = 1,
        batch_texts: int = 64,
    ) -> None:
        torch, library = _libraries()
        chosen = choose_device(torch, device, setting="HOPLINE_EMBEDDER__DEVICE")
        if chosen == "cpu":
            torch.set_num_threads(threads)
        self._name, self._precision, self._batch_texts = model, precision, batch_texts
        self._tokens = load_hub_tokenizer(model)
        self._model = _load(library, model, chosen, getattr(torch, _DTYPES[precision]))
        self._family = family_of(model) or _family_from_prompts(self._model.prompts)

    @property
    def model_id(self) -> str:
        return torch_model_id(self._name, self._precision)

    @property
    def pair_id(self) -> str:
        return pair_of(self._name)

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension())

    @property
    def max_tokens(self) -> int:
        prefixes = (self._family.query_prefix, self._family.passage_prefix)
        return token_budget(int(self._model.max_seq_length), *map(self._tokens.prefix_ids, prefixes))

    @property
    def cosine_floor(self) -> float:
        return self._family.cosine_floor

    @property
    def mixes_documents(self) -> bool:
        """Float activations are not scaled over the batch: neighbours change the last bits at most."""
        return True

    @property
    def tokenizer_id(self) -> str:
        return self._tokens.tokenizer_id

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        check_passages(texts, self._tokens.count_tokens(texts), max_tokens=self.max_tokens)
        return self._encode([self._family.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        check_query(text)
        vector: Vectors = self._encode([self._family.query_prefix + text])[0]
        return vector

    def _encode(self, texts: list[str]) -> Vectors:
        # `encode` sorts by length and restores the order itself; what is too long is cut (queries only).
        raw = self._model.encode(
            texts,
            prompt="",
            batch_size=self._batch_texts,
            convert_to_numpy=True,
            normalize_embeddings=False,
            show_progress_bar=False,
        )
        return unit_rows(raw)


_DTYPES: dict[Precision, str] = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def load_hub_tokenizer(model: str) -> FileTokenizer:
    """The tokenizer of a folder or hub id, without torch: processes that only cut chunks need no extra."""
    from huggingface_hub import hf_hub_download

    try:
        path = (
            Path(model) / TOKENIZER_FILE
            if Path(model).is_dir()
            else Path(hf_hub_download(model, TOKENIZER_FILE))
        )
        return FileTokenizer(path, name=short_name(model))
    except (OSError, ValueError, RuntimeError) as exc:  # what the hub's client raises when it is away
        raise ConfigurationError(_unloadable(model, exc)) from exc


def _libraries() -> tuple[Any, Any]:
    report_nothing()
    try:
        import sentence_transformers
        import torch
    except ImportError as exc:
        raise ConfigurationError(
            "HOPLINE_EMBEDDER__BACKEND=torch needs the extra `gpu`: "
            "pip install 'hopline[gpu]' (5 GB), or set it to onnx"
        ) from exc
    return torch, sentence_transformers


def _load(library: Any, model: str, device: str, dtype: Any) -> Any:
    try:
        return library.SentenceTransformer(model, device=device, model_kwargs={"dtype": dtype})
    except (OSError, ValueError, KeyError) as exc:
        raise ConfigurationError(_unloadable(model, exc)) from exc


def _unloadable(model: str, cause: Exception) -> str:
    return (
        f"the embedding model {model!r} can't be loaded ({cause}): set HOPLINE_EMBEDDER__MODEL "
        "to a folder that holds it, or allow the model hub (HF_HUB_OFFLINE=0)"
    )


def _family_from_prompts(prompts: dict[str, str]) -> Family:
    """A model that brings its own prompts is used with them."""
    passage = prompts.get("passage") or prompts.get("document") or ""
    return Family(query_prefix=prompts.get("query") or "", passage_prefix=passage)
