"""Models whose calls are told of: what one took, and of how many texts. Who listens counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from indexers.ports import Embedder, Vectors

ModelKind = Literal["embedder", "extractor"]
MODELS: Final[tuple[ModelKind, ...]] = get_args(ModelKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """One answered call. `texts`: passages or a query, of the extractor windows."""

    model: ModelKind
    texts: int
    seconds: float


ModelObserver = Callable[[ModelCalled], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEmbedder:
    """An `Embedder` that tells of each answered call, on the thread that made it."""

    embedder: Embedder
    observe: ModelObserver

    @property
    def tokenizer_id(self) -> str:
        return self.embedder.tokenizer_id

    @property
    def model_id(self) -> str:
        return self.embedder.model_id

    @property
    def pair_id(self) -> str:
        return self.embedder.pair_id

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    @property
    def max_tokens(self) -> int:
        return self.embedder.max_tokens

    @property
    def cosine_floor(self) -> float:
        return self.embedder.cosine_floor

    @property
    def mixes_documents(self) -> bool:
        return self.embedder.mixes_documents

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        started = time.perf_counter()
        vectors = self.embedder.embed_passages(texts)
        self._tell(len(texts), started)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        started = time.perf_counter()
        vector = self.embedder.embed_query(text)
        self._tell(1, started)
        return vector

    def _tell(self, texts: int, started: float) -> None:
        self.observe(ModelCalled(model="embedder", texts=texts, seconds=time.perf_counter() - started))
