"""Embedder over onnxruntime on CPU: light enough for a laptop and for every query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from indexers.embedders.checks import check_passages, check_query, unit_rows
from indexers.embedders.spec import TOKENIZER_FILE, model_file, read_spec
from indexers.embedders.tokens import FileTokenizer, token_budget
from indexers.onnx_session import open_session
from indexers.pinned import PinnedThread
from indexers.ports import Vectors

P = ParamSpec("P")
T = TypeVar("T")


class OnnxEmbedder:
    """int8 activations are scaled over the whole padded batch: a vector depends a little on its neighbours.

    Hence one text per model call by default: a vector is then a function of its text alone. On one core that
    is also faster for long texts and holds memory flat (docs/explanation/embedders.md). With larger groups
    the caller gives one document version's chunks per call; texts are ordered by (length, ids) and cut into
    groups of `batch_texts`, so the same set of texts gives the same vectors in whatever order they come.
    """

    def __init__(
        self, folder: Path, *, threads: int = 1, batch_texts: int = 1, cpu_affinity: tuple[int, ...] = ()
    ) -> None:
        self._spec = read_spec(folder)
        self._tokens = FileTokenizer(model_file(folder, TOKENIZER_FILE), name=self._spec.name)
        self._query_prefix = self._tokens.prefix_ids(self._spec.query_prefix)
        self._passage_prefix = self._tokens.prefix_ids(self._spec.passage_prefix)
        self._batch_texts = batch_texts
        self._pinned = PinnedThread(cpu_affinity) if cpu_affinity else None
        self._session = self._on_model_thread(
            open_session, model_file(folder, self._spec.model_file), threads
        )

    @property
    def model_id(self) -> str:
        return self._spec.name

    @property
    def pair_id(self) -> str:
        return self._spec.base

    @property
    def dimension(self) -> int:
        return self._spec.dimension

    @property
    def max_tokens(self) -> int:
        return token_budget(self._spec.max_tokens, self._query_prefix, self._passage_prefix)

    @property
    def cosine_floor(self) -> float:
        return self._spec.cosine_floor

    @property
    def mixes_documents(self) -> bool:
        return self._batch_texts == 1

    @property
    def tokenizer_id(self) -> str:
        return self._tokens.tokenizer_id

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return self._on_model_thread(self._passages, texts)

    def embed_query(self, text: str) -> Vectors:
        check_query(text)
        return self._on_model_thread(self._query, text)

    def _passages(self, texts: Sequence[str]) -> Vectors:
        token_ids = self._tokens.token_ids(texts)
        check_passages(texts, [len(ids) for ids in token_ids], max_tokens=self.max_tokens)
        order = sorted(range(len(texts)), key=lambda i: (len(token_ids[i]), token_ids[i]))
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(order), self._batch_texts):
            group = order[start : start + self._batch_texts]
            vectors[group] = self._run([(*self._passage_prefix, *token_ids[i]) for i in group])
        return vectors

    def _query(self, text: str) -> Vectors:
        [ids] = self._tokens.token_ids([text])
        vector: Vectors = self._run([(*self._query_prefix, *ids[: self.max_tokens])])[0]
        return vector

    def _run(self, rows: Sequence[tuple[int, ...]]) -> Vectors:
        width = max(map(len, rows)) + 2
        input_ids = np.full((len(rows), width), self._spec.pad_id, np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        for row, ids in enumerate(rows):
            input_ids[row, : len(ids) + 2] = (self._tokens.opening, *ids, self._tokens.closing)
            mask[row, : len(ids) + 2] = 1
        [raw] = self._session.run(None, {"input_ids": input_ids, "attention_mask": mask})
        return unit_rows(raw)

    def _on_model_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs) if self._pinned is None else self._pinned.call(work, *args, **kwargs)
